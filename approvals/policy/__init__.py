"""Which policy applies to a call, and what it demands: rules (pure) → stored → versions (the only writer) → admin."""
