"""Agents for the tests of the command line, each good at one thing."""

import asyncio

from dragoman import Agent, Artifact, Part, Turn

# What an agent might try on a terminal (reliability-security-ux.md, S38).
HOSTILE = (
    "A\x1b[2J\x1b[1;1HB\x1b]0;owned\x07C\x1b]52;c;aGk=\x1b\\D\x1b]8;;http://evil\x1b\\E\x1b]8;;\x1b\\F"
    "\x9b31mG\x9d0;owned\x9cH\x90q\x1b\\I\x1b_apc\x1b\\J\x1b^pm\x1b\\K\x1bXsos\x1b\\L\u202eM\u2066N\x08\x7f\x07O\r\n"
)
SHOWN = "ABCDEFGHIJKLMNO\n"


async def say_again(turn: Turn):
    return turn.text


async def ask(turn: Turn):
    answer = await turn.ask("Which colour?")
    return f"{answer.text} it is"


async def ask_for_key(turn: Turn):
    await turn.ask("Sign in at https://example.com", auth=True)


async def fail(turn: Turn):
    await turn.fail("It broke")


async def decline(turn: Turn):
    await turn.reject("Not mine to do")


async def stay(turn: Turn):
    await turn.say("Reading page 3")
    await asyncio.Event().wait()


async def answer_in_words(turn: Turn):
    await turn.reply("Only words")


async def show_parts(turn: Turn):
    """Says of what kind the parts are that came, and gives a file and a value."""
    kinds = [
        "text" if part.text is not None else "url" if part.url else "raw" if part.raw is not None else "data"
        for part in turn.parts
    ]
    seen = " ".join(f"{kind}:{part.media_type}" for kind, part in zip(kinds, turn.parts, strict=True))
    report = Part(raw=b"1234", filename="report.pdf", media_type="application/pdf")
    await turn.give(Artifact("a", (Part(text=seen), Part(data={"n": 1}), report), "mixed"))


async def attack(turn: Turn):
    for c in HOSTILE:
        yield c


async def count(turn: Turn):
    for number in range(int(turn.text)):
        yield f"{number}\n"


echo = Agent("echo", say_again, skills=["say_again"])
asker = Agent("asker", ask)
doorman = Agent("doorman", ask_for_key)
failing = Agent("failing", fail)
declining = Agent("declining", decline)
staying = Agent("staying", stay)
talking = Agent("talking", answer_in_words, answers="message")
mixed = Agent("mixed", show_parts, input_modes=["*/*"], output_modes=["*/*"])
hostile = Agent("hostile", attack)
counting = Agent("counting", count)
