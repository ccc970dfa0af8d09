"""Measures the product as it runs: real services, real processes, ratios to a floor of the same minute."""
