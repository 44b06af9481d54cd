"""KataGo's JSON analysis protocol."""
