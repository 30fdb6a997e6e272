"""The report: what is in a context, item by item, what each costs, what left, and where it is."""

from __future__ import annotations

from holdfast.reports.conversations import report_on
from holdfast.reports.making import report_of
from holdfast.reports.values import ContextReport, Departure, Item, Subtotal

__all__ = ["ContextReport", "Departure", "Item", "Subtotal", "report_of", "report_on"]
