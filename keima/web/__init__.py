"""The board in a browser: play, analyse, review. `server.py` serves the pages, `messages.py` says what is spoken."""
