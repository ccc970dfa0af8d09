"""The heart: one claimed run is driven until it ends or must wait."""
