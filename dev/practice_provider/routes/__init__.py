"""The HTTP side: one module per group of routes. Handlers take the simulator and a request, and return a response or
a Refusal."""
