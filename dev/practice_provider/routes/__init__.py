"""What the routes of every vendor share. Handlers take the simulator and a request, and return a response or a
Refusal."""
