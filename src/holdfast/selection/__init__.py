"""Parts of structured contents: what a path selects in JSON, and rows of tables."""

from __future__ import annotations

from holdfast.selection.json_path import JsonPath, Selection, compile_path
from holdfast.selection.tables import Row, RowsPage, Table, select_rows

__all__ = ["JsonPath", "Row", "RowsPage", "Selection", "Table", "compile_path", "select_rows"]
