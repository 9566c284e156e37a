"""Operands for tensor_number_forms.py: products chosen for what alignment, rounding and special values do to
them, and accumulators chosen for each product's sum."""

import math
import random
import struct

import tensor_number_forms as tf

EXPONENT_BITS = {"f64": 11, "f32": 8, "tf32": 8, "bf16": 8, "f16": 5, tf.E5M2: 5, tf.E4M3: 4}
MANTISSA_BITS = {"f64": 52, "f32": 23, "tf32": 10, "bf16": 7, "f16": 10, tf.E5M2: 2, tf.E4M3: 3}


class Number:
    """A format with an exponent."""

    def __init__(self, name):
        self.name, self.e, self.m = name, EXPONENT_BITS[name], MANTISSA_BITS[name]
        self.bias, self.has_infinity = (1 << (self.e - 1)) - 1, name != tf.E4M3
        self.top = (1 << self.e) - (2 if self.has_infinity else 1)  # field of the largest numbers

    def code(self, sign, field, mantissa):
        field = max(0, min(field, self.top))
        code = field << self.m | mantissa & ((1 << self.m) - 1)
        if not self.has_infinity and code == 0x7F:
            code = 0x7E
        return sign << (self.e + self.m) | code

    def value(self, code):
        """Infinities and NaNs count as 0."""
        field, mantissa = code >> self.m & ((1 << self.e) - 1), code & ((1 << self.m) - 1)
        if (self.has_infinity and field > self.top) or (not self.has_infinity and code & 0x7F == 0x7F):
            return 0.0
        significand = mantissa | (1 << self.m if field else 0)
        value = math.ldexp(significand, max(field, 1) - self.bias - self.m)
        return -value if code >> (self.e + self.m) & 1 else value

    def specials(self, rng):
        """An infinity or a NaN."""
        if not self.has_infinity:
            return 0x7F | rng.getrandbits(1) << 7
        mantissa = 0 if rng.random() < 0.6 else 1 + rng.getrandbits(self.m) % ((1 << self.m) - 1)
        return rng.getrandbits(1) << (self.e + self.m) | (self.top + 1) << self.m | mantissa


KINDS = ["near", "spread", "sparse", "cancel", "subnormal", "special", "any", "tiny", "large", "spread", "holes",
         "deep", "tie"]


def draw(rng, number, kind):
    """A finite code."""
    sign, mantissa, bias = rng.getrandbits(1), rng.getrandbits(number.m), number.bias
    if kind == "sparse" and rng.random() < 0.85:
        return number.code(sign, 0, 0)
    if kind == "subnormal":
        field = 0 if rng.random() < 0.6 else rng.randrange(1, 4)
    elif kind == "any":
        field = rng.randrange(number.top + 1)
    elif kind == "tiny":  # products about the smallest normal fp32
        field = bias - min(66, bias) + rng.randrange(10) if number.e == 8 else rng.randrange(5)
    elif kind == "large":
        field = bias + 63 + rng.randrange(2) if number.e == 8 else number.top - rng.randrange(3)
    elif kind in ("spread", "special", "cancel"):
        width = 18 if number.e > 5 else bias - 1
        field = bias + rng.randint(-width, width)
    else:
        field = bias + rng.randint(-2, 2)
    return number.code(sign, field, mantissa)


def draw_holes(rng, form, numbers):
    """Small products, and zeros times anything, also the largest numbers."""
    a, b = ([[draw(rng, number, "any" if number.e < 8 else "spread") for _ in range(form.k)] for _ in range(rows)]
            for number, rows in zip(numbers, (form.m, form.n)))
    for k in range(form.k):
        zero, other = (a, b) if rng.getrandbits(1) else (b, a)
        other_number = numbers[1] if other is b else numbers[0]
        if rng.random() < 0.6:
            for row in zero:
                row[k] = 0
            for row in other:
                sign, down = rng.getrandbits(1), rng.randrange(other_number.top // 3)
                row[k] = other_number.code(sign, other_number.top - down, rng.getrandbits(other_number.m))
        else:
            for number, rows in zip(numbers, (a, b)):
                for row in rows:
                    low = rng.randrange(4) if number.e < 8 else number.bias - 45 + rng.randrange(12)
                    row[k] = number.code(rng.getrandbits(1), low, rng.getrandbits(number.m))
    return a, b


def draw_deep(rng, form, numbers):
    """Products about the smallest subnormal accumulator and below."""
    def code(number):
        if rng.random() < 0.3:
            return 0
        field = rng.randrange(3) if number.e < 8 else number.bias - 73 + rng.randint(-6, 8)
        mantissa = rng.getrandbits(number.m) if rng.getrandbits(1) else 1 << rng.randrange(number.m)
        return number.code(rng.random() < 0.3, field, mantissa)
    return ([[code(number) for _ in range(form.k)] for _ in range(rows)]
            for number, rows in zip(numbers, (form.m, form.n)))


def draw_tie(rng, form, numbers):
    """One or two powers of two, about half of a subnormal fp16, and products that are as small as can be."""
    lowest = 25 if all(number.e < 8 for number in numbers) else 150
    def rows_of(count, number, halves):
        rows = [[rng.choice([0, 1, 1, 2, 3]) | rng.getrandbits(1) << (number.e + number.m) for _ in range(form.k)]
                for _ in range(count)]
        for row in rows:
            for k in halves:
                half = lowest // 2 + rng.randint(-1, 1)
                if half < number.bias:
                    row[k] = number.code(rng.getrandbits(1), number.bias - half, 0)
                else:  # subnormal
                    down = min(half - number.bias + 1, number.m)
                    row[k] = number.code(rng.getrandbits(1), 0, (1 << number.m) >> down)
        return rows
    halves = rng.sample(range(form.k), rng.randint(1, 2))
    return rows_of(form.m, numbers[0], halves), rows_of(form.n, numbers[1], halves)


def draw_floats(rng, form, kind):
    a_number, b_number = Number(form.a), Number(form.b)
    own = {"holes": draw_holes, "deep": draw_deep, "tie": draw_tie}.get(kind)
    if own:
        return own(rng, form, (a_number, b_number))
    a = [[draw(rng, a_number, kind) for _ in range(form.k)] for _ in range(form.m)]
    b = [[draw(rng, b_number, kind) for _ in range(form.k)] for _ in range(form.n)]
    if kind == "cancel":  # k and a partner have opposite products, but for a few
        sign, partner = 1 << (a_number.e + a_number.m), list(range(form.k))
        rng.shuffle(partner)
        for i in range(0, form.k, 2):
            x, y = partner[i], partner[i + 1]
            for row in a:
                row[y] = row[x] ^ sign if rng.random() < 0.95 else row[y]
            for row in b:
                row[y] = row[x]
    if kind == "special":
        for rows, number in ((a[:5], a_number), (b[:2], b_number)):
            for row in rows:
                for _ in range(rng.randint(1, 2)):
                    row[rng.randrange(form.k)] = number.specials(rng)
    return a, b


def round_to(name, value):
    """The code of a float in an accumulator's format; overflow gives the largest number."""
    letters = {"f16": ("e", "H"), "f32": ("f", "I"), "f64": ("d", "Q")}[name]
    try:
        return struct.unpack(letters[1], struct.pack(letters[0], value))[0]
    except OverflowError:
        return Number(name).code(value < 0, Number(name).top, -1)


def draw_accumulator(rng, name, kind, total, lowest):
    """A code chosen for a product that sums to `total`, whose last bit is worth 2^lowest."""
    number = Number(name)
    sign, mantissa = rng.getrandbits(1), rng.getrandbits(number.m)
    if kind in ("deep", "tie") and rng.random() < 0.8:
        return number.code(sign, rng.choice([0, 0, 0, 1, 2]),
                           rng.choice([0, 0, 1, mantissa >> rng.randrange(number.m)]))
    field = (math.frexp(total)[1] - 1 if total else lowest) + number.bias
    size = rng.randrange(16)
    if size == 0:
        return number.code(sign, 0, 0)
    if size < 4:  # larger or smaller by up to more than all bits
        return number.code(sign, field + rng.randint(-number.m - 7, number.m + 7), mantissa)
    if size < 7:
        return number.code(sign, field + rng.randint(-3, 3), mantissa)
    if size < 9:  # cancels all but the last bits
        code = round_to(name, -total)
        return code ^ rng.randrange(4) if code & ((1 << (number.e + number.m)) - 1) else code
    if size < 12:  # the last bits of the sum are about half of the accumulator's last bit
        return number.code(sign, lowest + number.m + rng.randint(0, 2) + number.bias, mantissa)
    if size == 12:  # few bits
        low = number.m - 3
        return number.code(sign, field + rng.randint(-6, number.m + 4), mantissa >> low << low)
    if size == 13:  # subnormal
        return number.code(sign, 0, mantissa >> rng.randrange(number.m))
    if size == 14:
        return rng.choice([number.code(sign, number.top, -1), number.code(sign, number.top, mantissa),
                           number.code(sign, 1, 0), number.specials(rng)])
    return rng.getrandbits(1 + number.e + number.m)


def sum_of(numbers, a, b):
    """The sum of products and the exponent of its last bit."""
    products = [numbers[0].value(x) * numbers[1].value(y) for x, y in zip(a, b)]
    finite = [product for product in products if abs(product) < 1e300]
    total, lowest = math.fsum(finite), 0
    if total:
        significand, exponent = math.frexp(total)
        whole = int(math.ldexp(significand, 53))
        lowest = exponent - 53 + (whole & -whole).bit_length() - 1
    return total, lowest


def draw_integers(rng, form):
    bits = {name: tf.BITS[name] for name in (form.a, form.b)}
    edge = [0, 1, (1 << bits[form.a]) - 1, 1 << (bits[form.a] - 1)]
    def code(name):
        return rng.choice(edge) & ((1 << bits[name]) - 1) if rng.random() < 0.3 else rng.getrandbits(bits[name])
    a = [[code(form.a) for _ in range(form.k)] for _ in range(form.m)]
    b = [[code(form.b) for _ in range(form.k)] for _ in range(form.n)]
    def c():
        near = rng.choice([0, 0x7FFFFFFF, 0x80000000, rng.getrandbits(32)])
        return (near + rng.randint(-200000, 200000)) & 0xFFFFFFFF
    return a, b, [[c() for _ in range(form.n)] for _ in range(form.m)]


def draw_product(rng, form, kind):
    if form.d == "s32":
        return draw_integers(rng, form)
    a, b = draw_floats(rng, form, kind)
    numbers = Number(form.a), Number(form.b)
    c = [[draw_accumulator(rng, form.d, kind, *sum_of(numbers, row, column)) for column in b] for row in a]
    if form.a == "tf32":  # the low 13 bits of a word are nobody's
        a, b = ([[x << 13 | (rng.getrandbits(13) if kind == "any" else 0) for x in row] for row in rows]
                for rows in (a, b))
    return a, b, c


class Words:
    """An array of bits."""

    def __init__(self, count):
        self.value = [0] * count

    def put(self, bit, bits, code):
        for part in range(0, bits, 32):
            self.value[(bit + part) // 32] |= (code >> part & 0xFFFFFFFF) << (bit + part) % 32


def operand_place(thread, register, element, per_register):
    """Row and k of an element of A; of B without the rows of the upper half."""
    group, inside = thread % 32 // 4, thread % 4
    return group, per_register * inside + element + 4 * per_register * register


def pack(form, a, b, c):
    """The words that the kernel reads."""
    bits = 32 if form.a == "tf32" else tf.BITS[form.a]
    words = Words(form.in_words)
    a_bytes = 0 if form.is_a_in_registers else 2048
    if form.is_wgmma:
        for rows, base in ((b, a_bytes),) if form.is_a_in_registers else ((a, 0), (b, a_bytes)):
            for i, row in enumerate(rows):
                for k, code in enumerate(row):
                    byte, inside = divmod(k * bits, 8)
                    at = base + i // 8 * 256 + byte // 16 * 128 + i % 8 * 16 + byte % 16
                    words.put(at * 8 + inside, bits, code)
    width = max(bits, 32)
    per, c_bits = width // bits, {"f16": 16, "f64": 64}.get(form.d, 32)
    for thread in range(form.threads):
        at = 32 * (form.image_words + thread * (form.a_words + form.b_words + form.d_words))
        first_row = thread // 32 * 16
        for register in range(form.a_words * 32 // width):
            for element in range(per):
                half = register % 2 if form.m != 8 else 0
                row, k = operand_place(thread, register // 2 if form.m != 8 else register, element, per)
                words.put(at + register * width + element * bits, bits, a[first_row + row + 8 * half][k])
        at += 32 * form.a_words
        for register in range(form.b_words * 32 // width):
            for element in range(per):
                row, k = operand_place(thread, register, element, per)
                words.put(at + register * width + element * bits, bits, b[row][k])
        at += 32 * form.b_words
        for i in range(form.d_words * 32 // c_bits):
            row, column = first_row + thread % 32 // 4 + 8 * (i // 2), 2 * (thread % 4) + i % 2
            words.put(at + i * c_bits, c_bits, c[row][column])
    return words.value


def kind_of(product):
    """All of them in a round; the first three are very different."""
    return KINDS[5 * product % len(KINDS)]


def products(form, count, seed):
    """`count` products, each the words of a CTA."""
    rng = random.Random(f"{form.name} {seed}")
    return [pack(form, *draw_product(rng, form, kind_of(i))) for i in range(count)]
