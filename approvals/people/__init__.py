"""Who may decide, at this moment: rulings, seats, standing in, and whom a ladder let in."""
