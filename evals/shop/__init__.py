"""A small shop with orders and refunds: the business table that the refund-desk works on."""

from __future__ import annotations
