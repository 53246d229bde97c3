"""The tasks of peft by the classes of models."""

from __future__ import annotations

_TASKS = {
    "ForCausalLM": "CAUSAL_LM",
    "LMHeadModel": "CAUSAL_LM",
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
    "ForConditionalGeneration": "SEQ_2_SEQ_LM",
    "Seq2SeqLM": "SEQ_2_SEQ_LM",
}


def task_of(name: str) -> str | None:
    """The task for the class of a model of transformers: peft trains the new head of a classifier as well."""
    return next((task for end, task in _TASKS.items() if name.endswith(end)), None)
