"""The pages: runs, traces, audit and agents. Views check rights and render."""
