"""Dialects: the insides of requests and answers, whatever transport carries them."""
