-- A script looks at so many fields of a lock one by one. A lock may have many more, since each reader has one.
local FIELDS_MAX = 16
