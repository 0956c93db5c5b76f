-- wire: RPermitExpirableSemaphore's deadline of a permit without a lease.
local NO_DEADLINE_MS = 922337203685477
