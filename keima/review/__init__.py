"""Whole-game analysis and its report (JSON, HTML)."""
