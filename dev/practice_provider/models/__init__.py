"""What answers the requests: small pluggable models, chosen by the model name of a request."""
