-- So many fields of a lock are looked at one by one. It may have many more, since each reader has one.
local FIELDS_MAX = 16
