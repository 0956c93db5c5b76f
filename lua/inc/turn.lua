-- Which waiter has the next turn of a free lock: a string beside it, "SINCE ID", since when it waits and its hold id, or
-- OTHERS. While it is there callers of ours that would be faster leave the lock to that waiter. Java does not know it.
-- A waiter for several permits of a semaphore adds how many, "SINCE ID PERMITS": so many are left to it.
local OTHERS = '-' -- Redisson's waiters, and those of older versions
