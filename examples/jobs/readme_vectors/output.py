"""What an embedding job stores."""

from pydantic import BaseModel, ConfigDict, Field


class Output(BaseModel):
    """The vector of a text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    vector: list[float] = Field(description="Unit vector; the scalar product of two is their similarity.")
