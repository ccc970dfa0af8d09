"""The inbox as people see it: what its pages show (lines, pages, showing, wording) and the views that answer."""
