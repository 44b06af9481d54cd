"""Connect four: seven columns, six rows, four discs in a line win. The house's smallest game.

kernels.py      the record of a position and the compiled rules, on bitboards; what the search asks of them
position.py     `Position`, with columns a–g
records.py      games as text, `.c4`
archive.py      games in a store, for training
playing.py      openings and endings of matches
drawing.py      pictures; `board.js` is the board of a review's page
analysis.py     the JSON analysis protocol
"""

from keima.games.connect_four.position import Position
from keima.games.game import Game

GAME = Game("connect_four", "connect four", ("first player", "second player"), __name__, suffixes=(".c4",))

__all__ = ["GAME", "Position"]
