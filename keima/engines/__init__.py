"""Engines other programs drive (GTP, UCI, JSON analysis), and matches between engines."""
