"""A local provider that speaks OpenAI's Files and Batch API and Anthropic's Message Batches, for demos and tests.

It is a stand-in for a paid service, so it keeps books of everything it executed. The rest of the package never
imports it: it is reached over HTTP like any other provider.
"""
