"""The compliance agent of the A2A walk-through: it asks for a passport scan and then gives its verdict.

dragoman serve examples/kyc.py
dragoman send http://127.0.0.1:8420 "Run a KYC check on applicant 88412."
dragoman send http://127.0.0.1:8420 --task-id … --file passport.png
"""

import re

from dragoman import Agent, Message, Skill, Turn

KYC = Skill(
    "kyc_check",
    "KYC Compliance Check",
    "Validates customer identity documents against Know Your Customer regulations. "
    "Accepts passport, drivers license, or national ID.",
    ("compliance", "kyc"),
    ("Run a KYC check on applicant 88412.",),
    input_modes=("text", "file"),
    output_modes=("text",),
)
AML = Skill(
    "aml_screening",
    "AML Screening",
    "Screens individuals and entities against sanctions lists and PEP databases.",
    ("compliance", "aml"),
    input_modes=("text",),
    output_modes=("text",),
)


def has_file(message: Message) -> bool:
    return any(part.raw is not None or part.url is not None for part in message.parts)


async def check(turn: Turn) -> None:
    """Checks an applicant: needs a scan of their passport, which may come with the request or later."""
    found = re.search(r"\d+", turn.text)
    applicant = f"applicant {found[0]}" if found else "the applicant"
    message = turn.message
    while not has_file(message):
        message = await turn.ask(f"Provide a passport scan for {applicant}.")
    await turn.artifact("KYC PASS: identity verified, no sanctions match.", "kyc_result")


agent = Agent(
    "compliance-checker",
    check,
    description="Validates documents against regulatory requirements for financial services. "
    "Supports KYC, AML, and SOX compliance checks.",
    version="2.1.0",
    skills=[KYC, AML],
    # What an agent takes is said in media types; a scan may be of any kind.
    input_modes=["text/plain", "image/*", "application/pdf", "application/octet-stream"],
    output_modes=["text/plain"],
)
