"""What the pages show of a run and its spans, as values: trees, bars, rows, words. Templates escape."""
