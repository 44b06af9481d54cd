"""Variants trained under one budget."""
