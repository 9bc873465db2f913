#!/usr/bin/env python3
"""Makes the expected values of tests/fixtures/chat_templates/ with jinja2 and transformers.

  jinja.jsonl   {template, variables, expected}: text of jinja2 in transformers' environment; null is an error
  chats.jsonl   {template, tokenizer, messages, ..., text, ids, mask}: apply_chat_template of conversations.json with
                the tokenizers of tests/fixtures/tokenizers

The templates in that folder are written by hand, in the published formats of the models. Needs
transformers 5. The files are committed, so the tests do not need them. Usage: scripts/make_chat_fixtures.py
"""
import json
import pathlib

from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "fixtures"
FOLDER = ROOT / "chat_templates"

# --- Expressions and statements ---

VARIABLES = {
    "s": "Hello World", "e": "", "u": "Grüße, Ärger ﬁ ß 你好 😀", "sp": "  two  words \n", "n": 7, "neg": -7, "f": 2.5,
    "t": True, "none": None, "l": [3, 1, 2], "names": ["bob", "Alice", "carol", "alice"], "empty": [],
    "d": {"b": 1, "a": 2, "C": [1, {"x": "y"}]}, "nested": {"a": {"b": {"c": [10, 20, 30]}}},
    "users": [{"name": "Zoe", "age": 31, "on": True}, {"name": "adam", "age": 25, "on": False},
              {"name": "Bea", "age": 31, "on": True, "mail": "b@x.org"}],
    "items": {"items": 1, "get": 2, "keys": "k"}, "html": "<a href=\"x\">&'</a>", "multi": "one\ntwo\r\n\nfour",
    "big": 9007199254740993, "tiny": 1e-07, "huge": 1e+22, "quote": "it's", "both": "it's \"x\"", "ctrl": "a\u0000b\u200b\t\\",
}

EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7 / 2
8 / 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
1 - 2 - 3
n / 2.0
f // 1
-f % 2
1_000 + 0x1F + 0o17 + 0b11
1.5e3
1e16
1e15
123456789.123
0.1 + 0.2
big + 1
tiny
huge
1.0
-0.0
100000000000000000000.0
n + t
'a' + 'b'
'a' ~ 1 ~ none ~ true ~ 2.5
'ab' * 3
3 * 'ab'
[1, 2] * 2
[1] + [2, 3]
(1, 2) + (3,)
'%s has %d and %.2f' % ('x', 3, 2.345)
'%5d|%-5d|%05d|%+d|%x' % (42, 42, 42, 42, 255)
'%s' % 'one'
'%r' % 'one'
'%(a)s-%(b)s' % {'a': 1, 'b': 2}
'%%' % ()
1 == 1.0
1 == true
'1' == 1
none == none
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
1 != 2
1 in l
5 in l
5 not in l
'World' in s
'a' in d
'x' not in d
not true
not not true
true and false
true or false
1 and 2
0 or 'x'
'' or none
e or 'default'
1 if true else 2
1 if false else 2
(1 if false) is defined
'a' if n > 5 else 'b' if n > 3 else 'c'
none
true
false
True
None
[1, 'a', none, true, 2.5]
(1, 2)
(1,)
()
{}
{'a': 1, 'b': [1, 2], 3: 'x'}
{'a': 1, 'a': 2}
{1: 'a', true: 'b'}
quote
[quote]
[both]
[ctrl]
['é', '😀', '\u00ad', '\n\t\r\\']
'\x41\u00e9\101\q'
'tab\there'
"double 'single'"
'adjacent' ' strings'
s[0]
s[-1]
s[1:4]
s[:-3]
s[::2]
s[::-1]
s[10:2:-2]
s[100:]
s[-100:3]
u[0:6]
u[::-1]
l[0]
l[-1]
l[1:]
l[::-1]
l[5] is defined
l[0:2][1]
(1,2,3)[1:]
d['a']
d.a
d.C[1].x
d['C'][1]['x']
d.missing is defined
d['missing'] is undefined
nested.a.b.c[1]
nested['a'].b['c'][-1]
nested.a.b.c.1
items['items']
items.keys() | list
s.upper()
s.lower()
s.title()
s.swapcase()
s.capitalize()
u.upper()
u.lower()
u | title
'hello wORLD-foo (bar)' | title
'hello wORLD-foo (bar)'.title()
'ΑΣ ΑΣΑ' | lower
'ǆ' | capitalize
sp.strip()
sp.lstrip()
sp.rstrip()
'xxhixx'.strip('x')
'abcHIcba'.lstrip('abc')
'abcHIcba'.rstrip('abc')
'  x '.strip(none)
s.split()
s.split('o')
s.split('o', 1)
s.rsplit('o', 1)
'a,b,,c'.split(',')
'  a  b  c '.split(none, 1)
'  a  b  c '.rsplit(none, 1)
'a b c'.split(maxsplit=1)
'a</think>b</think>c'.split('</think>')[-1]
multi.splitlines()
multi.splitlines(true)
s.startswith('Hell')
s.startswith(('x', 'H'))
s.endswith('ld')
s.startswith('World', 6)
s.find('o')
s.find('o', 5)
s.find('zz')
s.rfind('o')
s.index('W')
s.count('l')
s.count('l', 3)
''.count('')
s.replace('o', '0')
s.replace('o', '0', 1)
'aaa'.replace('', '-')
s.removeprefix('Hello ')
s.removesuffix('World')
', '.join(['a', 'b'])
'-'.join('abc')
'{} and {}'.format(1, 'x')
'{0}{1}{0}'.format('a', 'b')
'{x:>5}|{y:<5}|{z:^5}'.format(x=1, y='b', z='c')
'{:.2f} {:05d} {:,} {:x} {!r}'.format(2.346, 42, 1234567, 255, 'q')
'{a[0]}{b.c}'.format(a=[1], b={'c': 2})
'abc'.isalpha()
'12'.isdigit()
'a1'.isalnum()
' '.isspace()
'ABC'.isupper()
'abc'.islower()
'ab'.center(7, '*')
'ab'.ljust(5) ~ '|'
'ab'.rjust(5, '.')
'42'.zfill(5)
'-42'.zfill(5)
'a=b=c'.partition('=')
'a=b=c'.rpartition('=')
d.items() | list
d.keys() | list
d.values() | list
d.items()
d.get('a')
d.get('zz')
d.get('zz', 5)
l.index(1)
l.count(1)
(1, 1).count(1)
s | length
u | length
l | length
d | length
d | count
sp | trim
'xxhixx' | trim('x')
s | upper
s | lower
s | capitalize
'a b' | title
s | replace('o', '0')
s | replace('l', 'L', 2)
5 | replace(5, 'x')
l | join(', ')
names | join
l | first
l | last
s | first
s | last
empty | first is defined
names | sort
names | sort(case_sensitive=true)
names | sort(reverse=true)
users | sort(attribute='age') | map(attribute='name') | list
users | sort(attribute='age,name') | map(attribute='name') | list
users | sort(attribute='age', reverse=true) | map(attribute='name') | join(',')
names | unique | list
[1, 1.0, true, 2] | unique | list
l | reverse | list
s | reverse
l | min
l | max
names | min
users | max(attribute='age')
empty | max is defined
l | sum
users | sum(attribute='age')
[[1], [2]] | sum(start=[])
l | map('string') | list
names | map('upper') | join(' ')
users | map(attribute='mail', default='-') | list
users | selectattr('on') | map(attribute='name') | list
users | selectattr('age', 'equalto', 31) | list | length
users | selectattr('age', '>', 30) | map(attribute='name') | list
users | rejectattr('on') | map(attribute='name') | list
users | selectattr('mail', 'defined') | list | length
users | selectattr('name', 'in', ['Zoe']) | list | length
l | select('odd') | list
l | reject('odd') | list
[0, 1, '', 'a', none] | select | list
l | select('greaterthan', 1) | list
users | groupby('age') | list | length
d | dictsort
d | dictsort(true)
d | dictsort(by='key', reverse=true)
{'a': 2, 'b': 1} | dictsort(by='value')
d | items | list
d | list
'abc' | list
missing | items | list
missing | list
missing | length
missing | default('x')
none | default('x')
none | default('x', true)
e | d('x', boolean=true)
d.missing | default('y')
'3' | int
'3.7' | int
'abc' | int
'abc' | int(5)
'0x1f' | int(base=16)
' 12 ' | int
3.9 | int
-3.9 | int
none | int(-1)
'2.50' | float
'x' | float
'x' | float(1.5)
'1e3' | float
3 | float
'inf' | float
5 | string ~ 'x'
l | string
42.55 | round
42.55 | round(1)
42.55 | round(1, 'floor')
42.51 | round(0, 'ceil')
2.5 | round
3.5 | round
2.675 | round(2)
7 | round
1234 | round(-2)
-5 | abs
-2.5 | abs
true | abs
multi | indent
multi | indent(2)
multi | indent(2, true)
multi | indent(2, first=true, blank=true)
'a\nb' | indent('> ')
d | tojson
d | tojson(indent=2)
[] | tojson(indent=2)
[1, [], {}, [[2]]] | tojson(indent=1)
[1, 2.0, none, true, 'x', {'a': 'é😀\n"\\'}] | tojson
'é😀' | tojson(ensure_ascii=true)
d | tojson(sort_keys=true)
d | tojson(separators=(',', ':'))
{1: 'a', none: 'b', true: 'c', 2.5: 'd'} | tojson
html | tojson
html | e
html | escape | length
html | safe
'<' | e ~ '<'
('<' | e) + '<'
'<' + ('&' | safe)
html | string
'foo bar baz qux' | truncate(9)
'foo bar baz qux' | truncate(9, true)
'foo bar baz qux' | truncate(11)
'foo bar baz qux' | truncate(11, false, '..', 0)
'a b_c d-e' | wordcount
[1, 2, 3, 4, 5] | batch(2) | list
[1, 2, 3, 4, 5] | batch(2, 'x') | list
[1, 2, 3, 4, 5] | slice(3) | list
[1, 2, 3, 4, 5] | slice(3, 'x') | list
'ab' | center(6) ~ '|'
'%s!' | format('x')
'%(a)s' | format(a=3)
d | attr('items') is callable
l | map('abs') | sum
n is defined
missing is defined
missing is undefined
none is none
n is none
s is string
n is string
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
n is sequence
l is iterable
n is iterable
d.keys() is sequence
(l | map('abs')) is sequence
(l | map('abs')) is iterable
n is number
t is number
f is number
n is integer
t is integer
f is float
t is boolean
t is true
n is true
false is false
n is odd
n is even
n is divisibleby 7
n is divisibleby(3)
n is eq 7
n is equalto 7
n is ne 7
n is lt 8
n is ge(7)
n is in [7, 8]
n is not in [7]
'a' is in 'abc'
s is lower
s is upper
'trim' is filter
'nope' is filter
'odd' is test
none is sameas none
l is sameas l
range is callable
n is not none
not n is none
n is defined and n > 3
missing is not defined or missing
range(5) | list
range(2, 8, 3) | list
range(5, 0, -2) | list
range(3)
range(10)[2:5] | list
range(3) | length
3 in range(5)
dict(a=1, b=2)
dict({'a': 1}, b=2)
dict([('x', 1)])
namespace(a=1).a
namespace({'a': 1}).a
missing
missing ~ 'x'
missing == missing
missing == none
missing == ''
missing or 'x'
'x' in missing
'abc' is string and 'b' in 'abc'
s.upper().lower().title()
(s | upper).split(' ') | last
[1, 2, 3][1:] | map('string') | join('-')
'a' 'b' ~ 'c'
{'k': 'v'}.k
[[1, 2], [3, 4]][1][0]
'x' if missing else 'y'
(missing | default({})).foo is defined
'a' ~ ('b' if true)
n if n
'%d' % 3.99
[none, true, 1.5, 'x'] | map('string') | list
[{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | list
[['x', 1], ['y', 2]] | map(attribute=1) | list
[['x', 1], ['y', 2]] | map('first') | list
'a.b.c'.split('.', -1)
('a', 'b') | join('+')
'  lead' | trim ~ '|'
['b', 'a'] | sort | first
'İ'.lower() | length
'ŉ' | upper
'straße' | upper
'STRASSE' | lower
'a\tb c\n' | trim | tojson
1 in {1: 2}
1.0 in {1: 2}
d == d.copy()
[1, [2, [3]]]
{'a': {'b': ()}}
"a" < "b" and 1 < 2
-1 | abs
- 1 | abs
not 1 == 2
1 if not false
(l | sort)[0]
l | sort | string
(1, 'a') in [(1, 'a')]
{(1, 2): 'x'}[(1, 2)]
'a' > 'B'
'你好'.split('好')
'😀abc'[1:]
'😀abc'.find('b')
u | upper | lower
'A' | lower * 2
'abc' | first | upper
'x' * 0 ~ '|'
'x' * -1 ~ '|'
5 // 2.0
1e3 // 7
0x10
10 | string | length
'true' == true
[] == false
'' == false
0 == false
"" is none
""".strip().split("\n")

# Errors in jinja2 too.
ERRORS = r"""
missing.x
missing + 1
1 / 0
1 % 0
1 + 'a'
'a' + 1
[1] + (1,)
1 < 'a'
none < 1
1 in 5
1 in 'abc'
l.append(4)
d.update({'x': 1})
d.pop('a')
l | nosuchfilter
l is nosuchtest
missing()
n()
'a'.nosuch()
none | length
5 | length
(l | map('abs')) | length
missing | tojson
range(3) | tojson
raise_exception('no')
'x'.split('')
[3, 'a'] | sort
'a' | round
none | abs
{[1]: 2}
'%d' % 'x'
'%s %s' % ('a',)
'%s' % ('a', 'b')
'{} {}'.format(1)
range(200000)
5 | join
none | list
l[1
(1, 2
s.
1 +
l | map('nosuch') | list
d.items().x.y
s.upper(1)
l | first(1)
x = 1
a b
""".strip().split("\n")

TEMPLATES = r"""
{% for i in l %}{{ i }},{% endfor %}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }};{% endfor %}
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}
{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}
{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{% endfor %}
{% for i in l if i > 1 %}{{ i }}/{{ loop.length }}{% endfor %}
{% for i in empty %}x{% else %}none{% endfor %}
{% for i in l if i > 10 %}x{% else %}none{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for c in 'aé😀' %}[{{ c }}]{% endfor %}
{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for i in missing %}x{% else %}undefined is empty{% endfor %}
{% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in l %}{{ i }}{% break %}{% else %}x{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}
{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}
{% set ns = namespace(x=0, y='a') %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}
{% set ns = namespace(found=false) %}{% for i in l %}{% if i == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a, b = 'xy' %}{{ a }}{{ b }}
{% set x %}some {{ n }} text{% endset %}[{{ x }}]
{% set x | upper | trim %} abc {% endset %}[{{ x }}]
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}
{% if false %}a{% elif true %}b{% else %}c{% endif %}
{% if missing %}a{% else %}b{% endif %}
{% if n > 5 %}{% set y = 1 %}{% endif %}{{ y }}
{% if false %}{% set y = 1 %}{% endif %}{{ y is defined }}
{% macro m(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c='z') }}|{{ m(b=5, a=4) }}|{{ m() }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}
{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in {{ n }}{% endcall %}
{% macro m(u) %}{% for i in u %}{{ caller(i) }};{% endfor %}{% endmacro %}{% call(x) m([1, 2]) %}[{{ x }}]{% endcall %}
{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}
{% macro m() %}{{ late }}{% endmacro %}{% set late = 'z' %}{{ m() }}
{% macro m() %}{% set inner = 1 %}{% endmacro %}{{ m() }}{{ inner is defined }}
{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}
{% macro m(x) %}{{ x }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'x': 2}) }}
{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}o{% endmacro %}{{ outer() }}
{{ m is defined }}{% macro m() %}{% endmacro %}{{ m is defined }}{{ m is callable }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}
{% with %}{% set q = 1 %}{% endwith %}{{ q is defined }}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter replace('a', 'b') | upper %}aaa{% endfilter %}
{% raw %}{{ not }} {% parsed %}{% endraw %}
{% raw -%}   x   {%- endraw %}|
{%- raw %} {{ {% endraw -%} |
{# comment #}a{#- strip -#} b {# c #}
a {#- x #} b
{% generation %}gen{% endgeneration %}!
{% for i in l recursive %}{{ i }}{% endfor %}
{% for i in [1, [2, [3]]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}@{{ loop.depth }}{% endif %}{% endfor %}
{% print 'x' %}
  {% if true %}  x  {% endif %}  
a  {%- if true -%}  b  {%- endif -%}  c
a  {%+ if true %}b{% endif %}
   {%+ if true +%}
b{% endif %}
{{ 'a' -}}   b
a   {{- 'b' }}
{{- ' a ' -}}
{{ "}}" }}{{ '%}' }}
{{ {'a': {'b': 1}}['a']['b'] }}
{% set x = {'a': [1, 2, {'b': '}}'}]} %}{{ x.a[2].b }}
{{ 1 }}{% set messages = l[1:] %}{{ messages }}
{% for m in l %}{% set last = loop.last %}{{ last }}{% endfor %}
{% for i in l -%}
  {{ i }}
{%- endfor %}
{% for i in l %}
  {{ i }}
{% endfor %}
<s>
    {% if true %}
    x
    {% endif %}
</s>
{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b is defined }}{{ ns['a'] }}
{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% set ns.l = ns.l + [i * i] %}{% endfor %}{{ ns.l }}
{% for a in users %}{{ a.name }}{{ ', ' if not loop.last }}{% endfor %}
{% for a in users | selectattr('on') %}{{ loop.index }}{{ a['name'] }}{% endfor %}
{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}
{% for k, v in d | items %}{{ k }}{% endfor %}
{% for x in l | sort | reverse %}{{ x }}{% endfor %}
{% set loop_messages = l %}{{ loop_messages[0] }}
{% if s is string and s is not mapping %}y{% endif %}
{% if not (n == 7) != true %}y{% else %}z{% endif %}
{% if 'a' in 'abc' and 'z' not in 'abc' %}y{% endif %}
{{ (l | first) + 1 }}{{ -l[0] }}
{{ [1, 2,] }}{{ {'a': 1,} }}{{ (1,) }}
{{ s
   | upper
}}
x{{ '\n' }}y
{% for i in l %}{% if loop.first %}{{ i }}{% else %}, {{ i }}{% endif %}{% endfor %}
{%- for i in l %}

{{- i }}
{%- endfor %}
{% if true %}{% for i in l %}{% if i == 3 %}{{ 'three' }}{% elif i == 1 %}one{% endif %}{% endfor %}{% endif %}
{{ users[0].name if users else 'none' }}
{{ users[-1]['mail'] }} {{ users[0].mail is defined }} {{ users[0].get('mail', 'x') }}
{% set x = none %}{% if x is none %}n{% endif %}{{ x }}
{% set content = '<think>a</think>b' %}{% if '</think>' in content %}{{ content.split('</think>')[-1].lstrip('\n') }}{% endif %}
{{ range(3) | map('string') | join(' ') }}
{% for i in (1, 2) %}{{ i }}{% endfor %}{% for i in 1, 2 %}{{ i }}{% endfor %}
{% set t = 1, 2 %}{{ t }}
{{ 1, 2 }}
{{ 'a' if true }}{{ 'a' if false }}
{% for message in users %}{{ '<|' ~ message.name ~ '|>' + '\n' }}{% endfor %}
{% macro m(x) -%} [{{ x }}] {%- endmacro %}{{ m('a') | upper }}
{% set f = 'x' | e %}{{ f + '<' }}
{% for i in l %}{{ loop }}{% break %}{% endfor %}|
{% for i in l %}{{ loop|length }}{% endfor %}
""".strip("\n").split("\n")

# Templates of several lines.
BLOCKS = ["{% for i in l %}\n  {% if i > 1 %}\n    {{ i }}\n  {% endif %}\n{% endfor %}\nend\n",
          "{%- for i in l -%}\n  {{- i -}}\n{%- endfor -%}\n\n", "a\n\n", "a\n", "\n\na", "{% if true %}\n\n\nx{% endif %}",
          "{% if true %}\r\nx\r\n{% endif %}\r\ny\r", "  {% set x = 1 %}\n  {{ x }}\n", "\t{# c #}\n\tx", "{# c #}\n{# d #}x",
          "x {% if true %}\n y {% endif %} z", "{{ 'a' }}\n{{ 'b' }}\n", "{% raw %}\n  {{ x }}\n{% endraw %}\ny",
          "{%- set x -%}\n  v\n{%- endset -%}\n[{{ x }}]", "   {{ n }}\n   {% if true %}y{% endif %}\n",
          "{% if true -%}\n  \n  a\n{%- endif +%}\nb", "{% macro m() %}\n  x\n{% endmacro %}\n{{ m() }}",
          "{{ multi }}", "a\x0b{%- if true %}b{% endif %}", "a\u00a0 {%- if true %}b{% endif %}", "\u2003{% if true %}b{% endif %}"]

BROKEN = ["{% if %}", "{% for i in %}{% endfor %}", "{% if true %}", "{% endif %}", "{{ 1", "{% for i in l %}", "{{ }}", "{% foo %}",
          "{% set %}", "{% set 1 = 2 %}", "{# x", "{% raw %}", "{{ 'a }}", "{{ a..b }}", "{% else %}", "{% for %}", "{{ [1, 2 }}", "{{ (1] }}",
          "{% if true %}{% endfor %}", "{% macro %}{% endmacro %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ a | }}", "{{ a is }}",
          "{% set true = 1 %}", "{% for i in l %}{{ i.x.y }}{% endfor %}", "{{ n.x.y }}", "{% set x.y = 1 %}", "{% set d.a = 1 %}",
          "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "{% for a, b in [1] %}{% endfor %}",
          "{% for a, b in [(1, 2, 3)] %}{% endfor %}", "{{ raise_exception('bad roles') }}", "{% include 'x' %}", "{{ 1 | }}", "{{ @ }}",
          "{% set ns = namespace(_a=1) %}", "{% call 1 %}{% endcall %}", "{{ s.__class__.__mro__ }}", "{{ ''.__class__() }}",
          "{% break %}", "{{ f(x=1, x=2) }}", "{{ f(x=1, 2) }}", "{{ a is b is c }}", "{{ loop.index }}", "{{ not }}", "{{ 1 2 }}"]


def jinja_cases():
    cases = [(f"{{{{ {e} }}}}", None) for e in EXPRESSIONS + ERRORS] + [(t, None) for t in TEMPLATES + BLOCKS + BROKEN]
    for template, _ in cases:
        try:
            compiled = chat_template_utils._compile_jinja_template(template)
            yield {"template": template, "expected": compiled.render(**VARIABLES)}
        except Exception as error:  # any exception of Python is an error of the template
            yield {"template": template, "expected": None, "error": f"{type(error).__name__}: {error}"[:200]}


# --- Conversations ---

TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a <city> & more.\nIn Celsius.", "parameters": {
        "type": "object", "properties": {
            "city": {"type": "string", "description": "Größe egal"}, "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {"type": ["integer", "null"]}, "tags": {"type": "array", "items": {"type": "number"}},
            "more": {"type": "object", "additionalProperties": {"type": "boolean"}}},
        "required": ["city"]}, "return": {"type": "object"}}},
    {"type": "function", "function": {"name": "clock", "description": "Now", "parameters": {"type": "object", "properties": {}}}}]


def says(*texts):
    return [{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i, text in enumerate(texts)]


def calls(*calls, content=None):
    return {"role": "assistant", "content": content, "tool_calls": [
        {"id": f"call0000{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(calls)]}


CONVERSATIONS = {
    "one": says("Hi"),
    "system": [{"role": "system", "content": "You are terse.\n"}] + says("  Why?  ", " Because. \n"),
    "turns": says("1 + 1?", "2", "Und ß, 你好, 😀?\n\n", "é\u0301 ok", "don't \t stop"),
    "long": [{"role": "system", "content": "S"}] + says("a b  c   d", "x\ny\n\nz", "ünï", "cödé", "1234567", "8.9"),
    "empty": says("", "", "x"),
    "special": says("<|im_end|> </s> <|eot_id|> {{ x }} {% y %}", "<s>[INST]"),
    "thoughts": says("q", "<think>\nwhy\n</think>\n\nso", "q2", "<think>because</think>\n\nthus"),
    "thinking": says("q") + [{"role": "assistant", "thinking": "hm", "content": "a"}],
    "reasoning": says("q") + [{"role": "assistant", "reasoning_content": "hm", "content": "a"}],
    "called": says("Weather?") + [calls(("get_weather", {"city": "Köln", "days": 2, "tags": [1.5, -2]})),
                                  {"role": "tool", "name": "get_weather", "tool_call_id": "call00000", "content": "{\"t\": 12.5}"},
                                  {"role": "assistant", "content": "12.5 degrees"}],
    "called-twice": [{"role": "system", "content": "Use tools."}] + says("Both") + [
        calls(("clock", {}), ("get_weather", {"city": "Oslo", "more": {"a": None, "b": True}}), content="Let me see."),
        {"role": "tool", "tool_call_id": "call00000", "content": "10:00"}, {"role": "tool", "tool_call_id": "call00001", "content": "3"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}]}],
    "twice-user": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
}

# template: (tokenizer, conversations in addition to the first five, other variables)
CHATS = {
    "chatml": ("gpt2", ["special", "twice-user"], {}),
    "chatml-generation": ("qwen", ["special"], {}),
    "llama2": ("llama2", ["special", "twice-user"], {}),
    "llama3": ("llama3", ["special"], {}),
    "llama3.1": ("llama3", ["called", "called-twice", "parts"], {"date_string": "1 Jan 2025", "tools_in_user_message": False}),
    "qwen2.5": ("qwen", ["special", "called", "called-twice"], {}),
    "qwen3": ("qwen", ["thoughts", "reasoning", "called", "called-twice"], {"enable_thinking": False}),
    "mistral-v1": ("llama2", ["special", "twice-user"], {}),
    "mistral-v3": ("llama2", ["called", "called-twice"], {}),
    "gemma": ("llama2", ["special", "twice-user"], {}),
    "gemma3": ("llama2", ["parts", "twice-user"], {}),
    "phi3": ("llama2", [], {}),
    "zephyr": ("llama2", [], {}),
    "deepseek": ("llama3", ["thoughts"], {}),
    "typed-tools": ("gpt2", ["called", "called-twice", "parts"], {}),
    "harmony": ("llama3", ["special", "thinking", "called", "called-twice"],
                {"builtin_tools": ["browser", "python"], "reasoning_effort": "high", "model_identity": "You are X."}),
}


def load_tokenizer(name):
    folder = ROOT / "tokenizers" / name
    config = json.loads((folder / "tokenizer_config.json").read_text())
    special = {k: v for k, v in config.items() if k.endswith("_token") and isinstance(v, str)}
    return PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), **special)


def chat_cases():
    for template, (tokenizer_name, more, variables) in CHATS.items():
        tokenizer = load_tokenizer(tokenizer_name)
        text = (FOLDER / f"{template}.jinja").read_text(encoding="utf-8")
        for name in list(CONVERSATIONS)[:5] + more:
            messages = CONVERSATIONS[name]
            variants = [(name in ("one", "turns", "called-twice"), None, {})]
            if name == "one":
                variants += [(False, None, {}), (True, None, variables)] if variables else [(False, None, {})]
            if "tool" in text and name in ("one", "called", "called-twice"):
                variants += [(True, TOOLS, {}), (False, TOOLS, variables)] if variables else [(True, TOOLS, {})]
            for prompt, tools, given in variants:
                case = {"template": template, "tokenizer": tokenizer_name, "messages": name, "add_generation_prompt": prompt,
                        "tools": tools is not None, "variables": given}
                arguments = dict(chat_template=text, add_generation_prompt=prompt, tools=tools, **given)
                try:
                    case["text"] = tokenizer.apply_chat_template(messages, tokenize=False, **arguments)
                except Exception as error:
                    yield case | {"text": None, "error": f"{type(error).__name__}: {error}"[:200]}
                    continue
                out = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True,
                                                    return_assistant_tokens_mask="{% generation %}" in text, **arguments)
                case["ids"] = out["input_ids"]
                if "assistant_masks" in out:
                    case["mask"] = out["assistant_masks"]
                yield case


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    (FOLDER / "variables.json").write_text(json.dumps(VARIABLES, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write_lines(FOLDER / "jinja.jsonl", jinja_cases())
    (FOLDER / "conversations.json").write_text(
        json.dumps({"conversations": CONVERSATIONS, "tools": TOOLS}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write_lines(FOLDER / "chats.jsonl", chat_cases())
