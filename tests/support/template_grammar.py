"""Random templates out of Jinja's grammar, with what chat templates use: most of them give a text, and some parts have another type than is
expected there, because how a template fails is to be equal, too. The same seed makes the same template.

Expressions are made of the lines of EXPRESSIONS: `$text` is an expression that gives a text, and ‹a¦b› is one of these.
"""
import random
import re

STRINGS = ["", " ", "a", "Hi", "user", "role", "content", "a b  c", " pad ", "x,y,,z", "</think>", "<think>a</think>b", r"line\nnext", r"\ttab", r"q\'s", r"d\"s", r"b\\s", r"\x41", r"\u00e9",
           "Zürich", "日本 語", "straße ǆ", "{{", "%}", "{#", "100%", "%s", "{}", r"\n\n", "ABC", "12", "-3", "1.5", "Ω\u3000\u00a0", "\U0001f600"]  # fmt: skip
TEXTS = ["", " ", "\n", "  \n", "\n\n", "a", "text ", " text\n", "\t", "{ ", "} }", "#", "é\n  ", "<|im_start|>", "\r\n", "%", "'", '"', "\\n", "  ab\n   cd\n", "日本"]
NAMES = {
    "text": ["bos_token", "eos_token", "pad_token"],
    "number": ["n", "x"],
    "truth": ["add_generation_prompt"],
    "texts": ["words"],
    "numbers": ["counts"],
    "messages": ["messages"],
    "dict": ["d"],
    "message": ["messages[0]", "messages[-1]", "(messages|first)", "(messages|last)"],
    "any": ["tools", "documents", "nothing", "enable_thinking", "date_string", "none", "messages", "d", "n", "words"],
}
ALL = [*NAMES]
ITEMS = {"texts": "text", "numbers": "number", "messages": "message", "any": "any"}
LITERALS = {
    "number": "0 1 2 3 -1 -2 7 10 2.5 0.1 -1.5 1e3 0x1F 1_000",
    "truth": "true false True False",
    "texts": r"['b','A','c','a'] [] ['x'] ('p','q') ['\ta','b\n',''] ['a','a','B','b'] ()",
    "numbers": "[3,1,2] [] range(4) [1,2.5,-3] (1,) range(5,0,-2) [1,1,2] [0]",
    "dict": "{} {'a':1,'b':'two'} dict(a=1,z=[1]) {'k':{'m':none},'l':2.0} {'B':1,'a':2,'C':true}",
}
LOOPS = {"number": "loop.index loop.index0 loop.revindex loop.length loop.depth", "truth": "loop.first loop.last loop.index0==n-4", "message": "loop.previtem loop.nextitem"}
PLACES = ["0", "0", "0", "-1", "-1", "1", "n - 5", "-2", "n"]
CUTS = ["[1:]", "[:-1]", "[:2]", "[::-1]", "[-2:]", "[1:3]", "[::2]", "[2:0:-1]", "[:]", "[n:]", "[:n - 4]", "[-1:-3:-1]"]

EXPRESSIONS = {
    "text": """
        $text.‹strip¦lstrip¦rstrip¦upper¦lower¦title¦capitalize¦swapcase›()
        $text.‹strip¦lstrip¦rstrip¦removeprefix¦removesuffix›($literal)
        $text.replace($literal, $literal‹¦, 1¦, 0›)
        $text.split($literal)[$place]
        $text.split($literal)[-1].lstrip('\\n')
        $text.‹rsplit¦split›($literal, 1)[0]
        $text.‹partition¦rpartition›($literal)[$place]
        $text.‹ljust(6, '*')¦rjust(8)¦center(7)¦zfill(5)¦splitlines()[0]›
        $text.join($texts)
        $text‹|¦ | ›‹trim¦upper¦lower¦title¦capitalize¦string¦indent¦reverse¦first¦last¦safe¦escape¦e¦tojson›
        $any|‹trim¦upper¦string¦default('z')¦d¦escape¦tojson¦title›
        $text|replace($literal, $literal)
        $any|default(‹$literal¦$text¦$number, true¦$literal, boolean=true›)
        $text|‹indent(2, first=true)¦indent(width=1, blank=true)¦truncate(5)¦truncate(6, true, '…')¦truncate(5, leeway=0)¦center(9)¦trim('a ')¦list|join('-')›
        $message‹.content¦.role¦['content']¦["role"]¦.get('content')¦.name¦.get('name', '-')›
        $message.content
        $text + $text
        $text ~ $text
        $text ~ $value ~ $literal
        $text‹$cut¦[$place]›
        $text * ‹0¦1¦2¦3›
        $text ‹or¦and› $text
        $text if $truth else $text
        $text if $truth
        '‹%s|%5s¦%r-%s¦%s%%%s›' % ($text, $value)
        '%d and %.2f' % ($number, $number)
        ‹'%s' % $text¦'%s'|format($text)¦'%(a)s' % {'a': $text}¦'%x' % $number¦'%-6s|%+d' % ($text, $number)›
        ‹'{}-{}'.format($text, $number)¦'{0:>6}{1:03d}'.format($text, 7)¦'{a}{b!r}'.format(a=$text, b=$literal)¦'{:.3f}'.format($number)¦'{:,}'.format($number)›
        $value|‹$json¦string›
        $texts|join(‹$literal¦›)
        $messages|join($literal, attribute='role')
        strftime_now('‹%d %b %Y¦%Y-%m-%d¦%H:%M¦%A %j¦%%¦on %B›')
        $call
        $call
        $dict.get($literal, $text)
        $texts|‹first¦last¦max¦min›
        $dict|attr('a')
    """,
    "number": """
        $number ‹+¦-¦*¦/¦//¦%› $number
        $number ‹+¦-¦*› $number
        $number ** ‹0¦1¦2¦3¦-1›
        ‹-¦+›$number
        ‹$texts¦$messages¦$text¦$dict¦$numbers›|‹length¦count›
        $number|‹abs¦int¦float¦round¦round(1)¦round(1, 'floor')¦round(method='ceil')›
        $text.‹find¦rfind¦count¦count¦find¦find¦index›($literal)
        $numbers|‹sum¦max¦min¦first¦last¦sum(start=2)›
        $text|‹int¦float¦int(7)¦int(default=-1)›
        $numbers[$place]
        ‹$texts¦$numbers¦$messages›.‹count¦count¦index›(‹$number¦$literal›)
        $number if $truth else $number
    """,
    "truth": """
        $value is ‹¦not ›‹defined¦undefined¦none¦string¦mapping¦number¦integer¦float¦boolean¦sequence¦iterable¦true¦false¦callable›
        $value is ‹¦not ›‹sameas none¦eq 5¦equalto 'user'¦in ['a', 'user', 5]¦ne n›
        $number ‹<¦<=¦>¦>=¦==¦!=› $number
        $number < $number <= $number
        $text ‹==¦!=¦<¦in¦not in› $text
        $text ‹in¦not in› ‹$texts¦$dict›
        not $truth
        $truth ‹and¦or› $truth
        $text.‹startswith¦endswith›(‹$literal¦($literal, 'a')›)
        $text.‹isdigit¦isupper¦islower¦isalpha¦isspace¦isalnum›()
        $number is ‹odd¦even¦divisibleby 2¦divisibleby(3)¦gt 2¦lt 3›
        $text is ‹lower¦upper›
        $message‹.role¦['role']› ‹==¦!=› '‹user¦system¦assistant¦tool›'
        $message['content'] is ‹string¦not string¦mapping¦none›
        $value == $value
        $any
        'name' in $message
    """,
    "texts": """
        [$text, $text, $literal]
        [$value]
        $text.‹split()¦splitlines()¦split(' ', 1)¦rsplit(none, 1)¦partition(' ')¦split($literal)›
        $texts|‹sort¦unique|list¦reverse|list¦list¦sort(reverse=true)¦sort(case_sensitive=true)¦map('upper')|list¦map('trim')|list¦select|list¦unique¦map('length')|list›
        $texts|‹reject('in', ['a'])|list¦map('replace', 'a', 'o')|list¦select('ne', 'a')|list¦select('string')|list¦map('default', 'q', true)|list¦reject('equalto', $literal)|list›
        $texts$cut
        $texts + $texts
        $dict‹|list¦|dictsort|map('first')|list¦.keys()¦.keys()|list¦.keys()|sort›
        $messages|map(attribute='‹role¦content¦name›'‹¦, default=1›)‹|list¦|list¦|list¦›
        $text|list
        $texts * ‹0¦1¦2›
        $texts|batch(‹1¦2¦3›‹¦, '0'›)|map('join')|list
        $texts|slice(‹1¦2›)|map('first')|list
    """,
    "numbers": """
        [$number, $number]
        range(‹0¦2¦3¦5›)
        range($place, ‹5¦7, 2›)
        $numbers|‹sort¦list¦unique¦reverse|list¦unique|list¦sort(reverse=true)›
        $numbers|‹select¦reject›(‹'gt', 1¦'divisibleby', 2¦'in', [1, 2]›)‹¦|list›
        $numbers|‹select¦reject›('‹odd¦even›')|list
        $numbers$cut
        $numbers|map('‹string¦abs¦float›')|list
        $texts|map('length')|list
        $numbers + $numbers
        $numbers|batch(2)|‹list|first¦map('sum')|list›
        $dict.values()|list
    """,
    "messages": """
        $messages$cut
        $messages[1:]
        $messages|‹selectattr¦rejectattr›('role', '‹equalto¦==¦ne¦in›', ‹'user'¦'system'¦['user', 'tool']›)‹|list¦|list¦|list¦›
        $messages|selectattr('‹content¦name¦role›')‹|list¦›
        $messages + [$message]
        $messages|‹reverse¦list¦reverse|list›
        $messages|sort(attribute='‹role¦content›'‹¦, reverse=true›)
        $messages|unique(attribute='role')‹|list¦|list¦›
        [$message, $message]
        $messages|rejectattr('content', '‹string¦none¦defined›')|list
        $messages|batch(2)|first
    """,
    "message": """
        $messages[$place]
        ($messages|‹first¦last›)
        {'role': $text, 'content': $text}
        dict($message, content=$text)
    """,
    "dict": """
        {$literal: $value, $literal: $value}
        {$literal: $value}
        dict($dict, ‹a¦k›=$any)
        $dict.copy()
        $message
        dict($dict‹|dictsort¦.items()›)
        {‹$number¦$text¦$truth›: 1, true: 2}
    """,
    "any": """
        $any.‹a¦b¦content¦x¦items¦function¦name›
        $dict[$literal]
        d.‹a¦b¦items¦zz›
        $any[$place]
        $any|default($text)
        ($text, $number)
        $dict.‹items()¦values()¦items()|list¦get('a')›
        $value
        $dict|‹dictsort¦items|list¦dictsort(by='value')¦dictsort(true)¦dictsort(reverse=true)›
        $texts|‹batch(2)|list¦slice(2)|list¦slice(3, 0)|list›
        ((tools or [d])[0].function or d).‹name¦parameters.properties¦parameters¦description›
    """,
    "json": """
        tojson
        tojson(‹indent=2¦ensure_ascii=true¦separators=(',', ':')¦sort_keys=true¦indent=4, sort_keys=true¦indent=none›)
    """,
}
EXPRESSIONS = {kind: [line.strip() for line in lines.strip().splitlines()] for kind, lines in EXPRESSIONS.items()}
CHOICE, PART = re.compile("‹([^‹›]*)›"), re.compile(r"\$([a-z]+)(?=([.\[]|\$cut)?)")
FILTERS = ["upper", "trim", "replace('a', 'o')", "indent(2)", "title", "lower | capitalize", "length", "indent(3, true)"]
STATEMENTS = ["shown", "shown", "condition", "condition", "loop", "loop", "loop", "assigned", "assigned", "namespace", "set_block", "macro", "call_block", "filter_block", "with_block", "small", "raised"]
IN_LOOPS = ["loop.index", "loop.nextitem is defined", "loop.previtem", "loop.cycle('a', 2)", "loop.changed(loop.index // 2)", "loop.length", "loop.last", "loop.revindex0"]


class Grammar:
    """One template: `Grammar(seed).template()`."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {kind: list(names) for kind, names in NAMES.items()}
        self.macros = []  # (name, how many parameters)
        self.loops, self.left, self.made = 0, 10, 0

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, share):
        return self.random.random() < share

    # ---- Expressions ---------------------------------------------------------------------------------------------------------------

    def value(self, kind, depth, is_first=False):
        """An expression of a kind; now and then of any other. `is_first`: an item or a method of it is taken."""
        if self.maybe(0.01):
            kind = self.one(*ALL)
        if depth <= 0 or self.maybe(0.25):
            return self.leaf(kind)
        made = self.expanded(self.one(*EXPRESSIONS[kind]), depth - 1)
        return f"({made})" if self.maybe(0.98 if is_first else 0.4) else made

    def expanded(self, line, depth):
        while CHOICE.search(line):
            line = CHOICE.sub(lambda found: self.one(*found[1].split("¦")), line)
        return PART.sub(lambda found: self.part(found[1], depth, found[2] is not None), line)

    def part(self, name, depth, is_first):
        if name in NAMES:
            return self.value(name, depth, is_first)
        return {"value": lambda: self.value(self.one(*ALL), depth), "literal": self.literal, "place": lambda: self.one(*PLACES), "cut": lambda: self.one(*CUTS),
                "json": lambda: self.expanded(self.one(*EXPRESSIONS["json"]), 0), "call": lambda: self.called(depth)}[name]()  # fmt: skip

    def leaf(self, kind):
        if self.loops and kind in LOOPS and self.maybe(0.3):
            return self.one(*LOOPS[kind].split())
        if kind == "text" and self.maybe(0.5):
            return self.literal()
        if kind in LITERALS and self.maybe(0.5):
            return self.one(*LITERALS[kind].split())
        return self.one(*self.names[kind])

    def literal(self):
        text, quote = self.one(*STRINGS), self.one("'", '"')
        return f"{quote}{text}{quote}"

    def called(self, depth):
        if not self.macros:
            return self.literal()
        name, n = self.one(*self.macros)
        given = [self.value(self.one(*ALL), depth - 1) for _ in range(n if self.maybe(0.8) else self.random.randint(0, n + 1))]
        if given and self.maybe(0.2):
            given[-1] = f"{self.one('p', 'q', 'z')}={given[-1]}"
        return f"{name}({', '.join(given)})"

    # ---- Statements ----------------------------------------------------------------------------------------------------------------

    def template(self):
        return self.statements(3, 1, 6)

    def statements(self, depth, least, most):
        return "".join(self.statement(depth) for _ in range(self.random.randint(least, most)))

    def within(self, write):
        """What is named within is not known after it. Now and then it is used there all the same: a name that has no value, or another one's."""
        names, macros = {kind: list(known) for kind, known in self.names.items()}, list(self.macros)
        written = write()
        if self.maybe(0.9):
            self.names, self.macros = names, macros
        return written

    def without_loop(self, write):
        """A function of its own, which has no `loop`; now and then it is asked for."""
        loops, self.loops = self.loops, self.loops if self.maybe(0.05) else 0
        written = self.within(write)
        self.loops = loops
        return written

    def body(self, depth):
        return self.within(lambda: self.statements(depth - 1, 0, 3))

    def named(self, kind, count=True):
        """A new name of a value of this kind; at times a name that there is."""
        self.made += 1
        name = f"{kind[0]}{self.made}" if self.maybe(0.85) else self.one("content", "item", "message", "role", "n", "x")
        if count:
            self.names[kind].append(name)
        return name

    def tag(self, words):
        return f"{{%{self.one('', '', '', '-', '-', '+')}{self.one(' ', ' ', chr(10))}{words}{self.one(' ', ' ', '')}{self.one('', '', '', '-', '-', '+')}%}}"

    def printed(self, expression):
        return f"{{{{{self.one('', '', '', '-')} {expression} {self.one('', '', '', '-')}}}}}"

    def statement(self, depth):
        self.left -= 1
        before = self.one(*TEXTS) + self.one(*TEXTS) if self.maybe(0.5) else ""
        if depth <= 0 or self.left < 0:
            return before + self.shown(depth)
        return before + getattr(self, self.one(*STATEMENTS))(depth)

    def shown(self, _depth):
        return self.printed(self.value(self.one(*ALL, "text", "text", "text"), self.one(1, 2, 3)))

    def condition(self, depth):
        parts = [self.tag(f"if {self.value('truth', 2)}"), self.body(depth)]
        if self.maybe(0.3):
            parts += [self.tag(f"elif {self.value('truth', 2)}"), self.body(depth)]
        if self.maybe(0.4):
            parts += [self.tag("else"), self.body(depth)]
        return "".join([*parts, self.tag("endif")])

    def head(self):
        kind = self.one("texts", "numbers", "messages", "messages", "texts", "dict", "dict", self.one("numbers", "any"))
        source = self.value(kind, 2)
        if kind == "dict":
            names = f"{self.named('text')}, {self.named('any')}"
            return f"{self.one(names, f'({names})')} in {source}{self.one('.items()', '|items', '|dictsort')}"
        return f"{self.named(ITEMS[kind])} in {source}"

    def loop(self, depth):
        def written():
            self.loops -= 1
            head = self.head() + (f" if {self.value('truth', 1)}" if self.maybe(0.25) else "")
            self.loops += 1
            recursive = self.maybe(0.08)
            inner = self.statements(depth - 1, 1, 3)
            if recursive:
                inner += self.one(self.printed("loop.depth ~ loop.depth0"), self.tag("if loop.depth < 3") + self.printed(f"loop({self.value('texts', 1)})") + self.tag("endif"))
            if self.maybe(0.2):
                inner += self.tag(f"if {self.value('truth', 1)}") + self.tag(self.one("break", "continue")) + self.tag("endif")
            if self.maybe(0.5):
                inner += self.printed(self.one(*IN_LOOPS))
            return self.tag(f"for {head}{' recursive' if recursive else ''}") + inner

        self.loops += 1
        begun = self.within(written)
        self.loops -= 1
        return begun + (self.tag("else") + self.body(depth) if self.maybe(0.15) else "") + self.tag("endfor")

    def assigned(self, _depth):
        if self.maybe(0.15):
            values = self.value("text", 2), self.value("number", 2)
            return self.tag(f"set {self.named('text')}, {self.named('number')} = {', '.join(values)}")
        kind = self.one(*ALL)
        value = self.value(kind, 2)
        return self.tag(f"set {self.named(kind)} = {value}")

    def namespace(self, depth):
        name, kind = self.named("space", count=False), self.one("text", "number", "truth", "texts")
        made = self.tag(f"set {name} = namespace(a={self.value(kind, 2)}{self.one('', ', b=none')})")
        self.names[kind] += [f"{name}.a"] * 2
        changed = self.tag(f"set {name}.{self.one('a', 'a', 'b')} = {self.value(kind, 2)}")
        if self.maybe(0.5):
            changed = self.tag("for m in messages") + self.body(depth) + changed + self.tag("endfor")
        return made + changed + self.one("", self.printed(f"{name}.{self.one('a', 'b')}"))

    def set_block(self, depth):
        inner = self.body(depth)
        change = self.one("", "", " | trim", " | upper", " | replace('a', 'o')", self.one(" | trim", " | replace(n, 1)"))
        return self.tag(f"set {self.named('text')}{change}") + inner + self.tag("endset")

    def macro(self, depth):
        name, parameters = f"f{len(self.macros)}", self.one(["p"], ["p", "q=2"], ["p", "q='z'", "r=p"], [])

        def written():
            self.names["any"] += [parameter.split("=")[0] for parameter in parameters]
            self.names["text"] += [parameter.split("=")[0] for parameter in parameters[:1]] * 3
            inner = self.statements(depth - 1, 1, 3)
            if self.maybe(0.35):
                inner += self.printed(self.one("caller()", "caller(1)", "caller() if caller else 0", "caller is defined"))
            return inner + self.one("", "", self.printed(self.one("varargs", "kwargs")))

        inner = self.without_loop(written)
        self.macros.append((name, len(parameters)))
        return self.tag(f"macro {name}({', '.join(parameters)})") + inner + self.tag("endmacro")

    def call_block(self, depth):
        if not self.macros:
            return self.macro(depth)

        def written():
            self.names["any"] += ["c1", "c1"]
            return self.body(depth)

        return self.tag(f"call{self.one('', '', '(c1)', '(c1=3)')} {self.called(2) if self.maybe(0.98) else 'n'}") + self.without_loop(written) + self.tag("endcall")

    def filter_block(self, depth):
        return self.tag(f"filter {self.one(*FILTERS)}") + self.body(depth) + self.tag("endfilter")

    def with_block(self, depth):
        kind = self.one("text", "number", "messages")
        value = self.value(kind, 2)
        return self.within(lambda: self.tag(f"with {self.named(kind)} = {value}") + self.body(depth)) + self.tag("endwith")

    def small(self, depth):
        if self.maybe(0.3):
            return self.tag("generation") + self.without_loop(lambda: self.body(depth)) + self.tag("endgeneration")
        return self.one(
            f"{{#{self.one('', '-')} {self.one('note', 'a {{ b }} {% c %}', chr(10))} {self.one('', '-')}#}}",
            f"{self.one('{% raw %}', '{%- raw -%}', '{% raw -%}')} {self.one('{{ a }}', '{% if %}', ' x ', '{#')} {self.one('{% endraw %}', '{%- endraw -%}', '{%- endraw +%}')}",
            self.tag(f"print {self.value('text', 2)}"),
            f"{{{{ {self.literal()} }}}}{self.one('', chr(10), ' ' + chr(10))}",
        )

    def raised(self, _depth):
        return self.tag(f"if {self.value('truth', 1)} and {self.value('truth', 1)}") + self.printed(f"raise_exception({self.value('text', 1)})") + self.tag("endif")
