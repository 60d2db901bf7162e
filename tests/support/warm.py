"""Imported once by a process that others are forked from: what a wake-up would spend seconds on stands ready in each.

Without it most workers would be killed while they load modules, and a kill there proves nothing.
"""

from __future__ import annotations

import anthropic.resources.messages.batches
import anthropic.resources.models
import openai.resources.batches
import openai.resources.files
from upath import UPath

from nightmill.jobs.settings.provider_settings import CHAT
from nightmill.jobs.tokens import TokenCounter
from nightmill.providers.anthropic.client import open_clients
from nightmill.providers.anthropic.transport import AnthropicBatches
from nightmill.providers.connection import ProviderConnection
from nightmill.providers.openai.client import open_client
from nightmill.providers.openai.transport import OpenAIBatches

__all__ = ["AnthropicBatches", "OpenAIBatches", "anthropic", "openai"]

TokenCounter("echo-1", CHAT).count_messages([{"role": "user", "content": "Text number 1."}])
_NOWHERE = ProviderConnection("warm", "http://127.0.0.1:9/v1", "key")
open_client(_NOWHERE, 0).close()
open_clients(_NOWHERE, 0).close()
UPath("file:///").exists()
