"""The processes of a run, and how they are kept alive.

processes.py   what every role's process needs: a parent it dies with, a lock, an end that is asked for
status.py      what a role tells of itself; all of a run at a glance
claims.py      who plays which games
worker.py      plays them
supervisor.py  one machine's roles: started, started again, ended
"""
