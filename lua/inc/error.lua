-- Error replies of commands that were run by redis.pcall.

local function is_error(reply) return type(reply) == 'table' and reply.err ~= nil end
local function has_text(reply, text) return string.find(reply.err, text, 1, true) ~= nil end
local function is_wrong_type(reply) return is_error(reply) and has_text(reply, 'WRONGTYPE') end
-- Whether a write was denied because the memory of the server is full.
local function is_memory_error(reply) return is_error(reply) and has_text(reply, 'OOM') end
