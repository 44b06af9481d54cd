"""Learning from zero: games by search, and networks that learn from them; on one machine or many.

recipe.py    what a run is
game.py      a game, with what the search said of every move
play.py      games side by side, their leaves sharing batches; journal.py: no move of them is lost
shards.py    finished games in a store (store.py), any fsspec address; columns.py: what they add to a game store
window.py    which of them a generation learns from, and its batches
learner.py   games → networks
judge.py     networks against each other: gating, Elo
roles.py     the processes of a run, and how they are kept alive
"""
