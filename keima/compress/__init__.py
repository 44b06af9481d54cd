"""Networks made smaller and faster for deployment."""
