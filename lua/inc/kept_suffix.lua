-- A hold that is kept until some time (--at-least) has that time in its owner, "OWNER:lingering:END_MS" by the server's
-- clock. So it belongs to no process, and no leftover process of the holder can re-enter the lock.
-- wire: that word stays; the source says "keep until" and "kept".
local KEPT = ':lingering:'
