# SPDX-License-Identifier: Apache-2.0
"""Renders one untrusted chat template; embedded in the artel program, run with `python3 -I -c`.

Standard input and output carry frames: 4 bytes of length (little-endian), then JSON. An empty
request asks whether the process is ready, the next opens a template, later ones render it:
    {}                                                     -> {}
    {"template", "bos", "eos", "control_spellings"}        -> {}
    {"messages", "tools", "add_generation_prompt", "now"}  -> {"segments": [[text, is_template]]}
"messages" and "tools" are JSON texts. A failure is {"error": text, "kind": "refused" (the template
raised it), "failed" (the template or the messages are wrong) or "limit"}.
chat_template.hpp says how the origin of text is kept.
"""
import ctypes
import datetime
import json
import os
import re
import resource
import signal
import struct
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

MEMORY_BYTES = 100 << 20
CPU_SECONDS = 3
FRAME_BYTES_MAX = 32 << 20
ERROR_CHARACTERS_MAX = 2000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000


class Refusal(jinja2.TemplateError):
    """The template called raise_exception."""


class GenerationBlock(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %} marks text for training; here it is its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def refuse(message):
    raise Refusal(message)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols", GenerationBlock],
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    return environment


def map_strings(value, change):
    """The same JSON value with every string in it, keys too, passed through `change`."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [map_strings(item, change) for item in value]
    if isinstance(value, dict):
        return {change(key): map_strings(item, change) for key, item in value.items()}
    return value


def strings_of(value):
    found = []
    map_strings(value, lambda text: found.append(text) or text)
    return found


def replace_surrogates(text):
    """JSON can spell half a surrogate pair, which is no character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def soften(messages):
    """Null contents as empty ones and JSON texts of tool arguments as objects, for templates that
    know only one form; nothing if there is neither."""
    changed = False
    softened = []
    for message in messages:
        message = dict(message)
        if "content" in message and message["content"] is None:
            message["content"] = ""
            changed = True
        calls = []
        for call in message.get("tool_calls") or []:
            function = dict(call.get("function") or {})
            if isinstance(function.get("arguments"), str):
                function["arguments"] = json.loads(function["arguments"])
                changed = True
            calls.append({**call, "function": function})
        if calls:
            message["tool_calls"] = calls
        softened.append(message)
    return softened if changed else None


class Template:
    def __init__(self, request):
        self.source = request["template"]
        self.compiled = make_environment().from_string(self.source)
        self.tokens = {"bos_token": request["bos"], "eos_token": request["eos"]}
        self.spellings = frozenset(request["control_spellings"])
        self.lengths = sorted({len(text) for text in self.spellings})
        edges = {text[0] for text in self.spellings} | {text[-1] for text in self.spellings}
        self.edge = re.compile("[" + re.escape("".join(sorted(edges))) + "]") if edges else None

    def render(self, request):
        messages = map_strings(json.loads(request["messages"]), replace_surrogates)
        tools = map_strings(json.loads(request["tools"] or "null"), replace_surrogates)
        if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
            raise ValueError("messages must be a list of objects")
        now = datetime.datetime.fromisoformat(request["now"]) if request["now"] else None
        self.variables = {
            **self.tokens,
            "documents": None,
            "add_generation_prompt": request["add_generation_prompt"],
            "strftime_now": lambda form: (now or datetime.datetime.now()).strftime(form),
        }
        try:
            text = self.render_once(messages, tools)
        except (Refusal, MemoryError, OverflowError, RecursionError):
            raise
        except Exception:
            messages = soften(messages)
            if messages is None:
                raise
            text = self.render_once(messages, tools)
        return self.segments(text, messages, tools)

    def render_once(self, messages, tools):
        return self.compiled.render(messages=messages, tools=tools, **self.variables)

    def segments(self, text, messages, tools):
        strings = strings_of([messages, tools])
        if not self.edge or not any(self.edge.search(string) for string in strings):
            return [[text, True]]
        mark = self.unused_character(strings)
        for marker in (self.edge_marker(mark), self.spelling_marker(mark, strings)):
            if marker is None:
                return [[text, True]]
            try:
                marked = self.render_once(map_strings(messages, marker), map_strings(tools, marker))
            except (MemoryError, OverflowError, RecursionError):
                raise
            except Exception:
                continue
            if marked.replace(mark, "") == text:
                return cut(marked, mark)
        return cut(marker(text), mark)

    def edge_marker(self, mark):
        """Marks each character that could begin or end a control token."""
        return lambda string: self.edge.sub(mark + r"\g<0>", string)

    def spelling_marker(self, mark, strings):
        """Marks where a control token that `strings` hold is spelled; None without any."""

        def spelled_at(found):
            ends = (found.start() + length for length in self.lengths)
            return {found.string[found.start() : end] for end in ends} & self.spellings

        held = set()
        for string in strings:
            for found in self.edge.finditer(string):
                held |= spelled_at(found)
        if not held:
            return None

        def replace(found):
            return (mark if spelled_at(found) & held else "") + found.group()

        return lambda string: self.edge.sub(replace, string)

    def unused_character(self, strings):
        for code in range(0xF0000, 0xFFFFE):
            if chr(code) not in self.source and not any(chr(code) in s for s in strings):
                return chr(code)
        raise OverflowError("the messages use every private character")


def cut(marked, mark):
    """The character behind each mark is from a message, the rest from the template."""
    first, *others = marked.split(mark)
    segments = [[first, True]] if first else []
    run = []  # characters that follow one another
    for part in others:
        run.append(part[:1])
        if len(part) > 1:
            segments += [["".join(run), False], [part[1:], True]]
            run = []
    return segments + [["".join(run), False]] if run else segments


def read_frame():
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        sys.exit(0)
    (count,) = struct.unpack("<I", head)
    return sys.stdin.buffer.read(count)


def write_frame(body):
    sys.stdout.buffer.write(struct.pack("<I", len(body)))
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def to_frame(answer):
    body = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace")
    if len(body) > FRAME_BYTES_MAX:
        raise OverflowError("the prompt is too long")
    return body


def failure(kind, text):
    return to_frame({"error": text[:ERROR_CHARACTERS_MAX], "kind": kind})


def warm_up():
    """Python loads some modules at first use, which must be before it may open no more files."""
    every_feature = r"{{ 'a\n' | tojson }}{{ lipsum(1) }}{{ 'a' | urlize | e }}{{ [1] | random }}"
    for source in (every_feature, "{{ raise_exception('') }}", "{{ x.y }}", "{% broken"):
        try:
            make_environment().from_string(source).render()
        except jinja2.TemplateError:
            pass
    datetime.datetime.now().strftime("%d %b %Y")


def drop_rights():
    """No network, no new files, a fixed amount of memory. Best effort for the first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).unshare(CLONE_NEWUSER | CLONE_NEWNET)
    warm_up()
    with open("/proc/self/statm", encoding="ascii") as statm:
        start_bytes = int(statm.read().split()[0]) * resource.getpagesize()
    os.closerange(3, 4096)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory = start_bytes + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def allow_cpu_time():
    """SIGXCPU ends a render that its parent, having died itself, can't end."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def answer(template, frame):
    """Returns the template to use from now on and the answer as a frame's body."""
    try:
        request = json.loads(frame)
        if not request:
            return template, to_frame({})
        if template is None:
            return Template(request), to_frame({})
        return template, to_frame({"segments": template.render(request)})
    except Refusal as error:
        return template, failure("refused", str(error))
    except MemoryError:
        return template, failure("limit", "more memory than a template may use")
    except (OverflowError, RecursionError) as error:
        return template, failure("limit", f"{type(error).__name__}: {error}")
    except Exception as error:
        return template, failure("failed", f"{type(error).__name__}: {error}")


def main():
    drop_rights()
    template = None
    while True:
        frame = read_frame()
        allow_cpu_time()
        template, response = answer(template, frame)
        write_frame(response)


main()
