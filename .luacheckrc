std = "lua53" -- the oldest that MAME 0.251 and later bring along
max_line_length = 120
globals = { "manager" } -- the emulator, whose settings scripts may change
read_globals = { "emu" }
include_files = { "**/*.lua", ".luacheckrc" }
exclude_files = { ".venv", "node_modules" }

-- The one name each script leaves behind, so that a second copy sees the first.
files["**/lua/main.lua"].globals = { "protege_client" }
files["**/lua/trace.lua"].globals = { "protege_trace" }
files["**/probe.lua"].globals = { "probe" }
