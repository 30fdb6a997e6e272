"""Fit the prices of `holdfast.tokens.text` to the exact tokenizer, and write them to `holdfast.tokens.constants`.

What they are fitted to: the payloads and the recorded runs below HOLDFAST_DATA (or ../shared/data), every kind with the
same weight; with little weight, one well-known sentence in many languages, random bytes as base64 and as hex, and runs
of one character, so that what the data lacks is not free. Prices are never negative. Prints the errors of each kind as
fitted, and as fitted without that kind. The same data gives the same file.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from holdfast.tokens import text as estimator
from holdfast.tokens.exact import exact_counter

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("HOLDFAST_DATA") or ROOT.parent / "shared" / "data")
CONSTANTS = ROOT / "src" / "holdfast" / "tokens" / "constants.py"

CHUNK = 2_000
CHUNKS_OF_A_PAYLOAD, CHUNKS_OF_A_MESSAGE, MESSAGES_OF_A_ROLE = 40, 4, 200
WEIGHTS = {"payload": 1.0, "trace": 0.7, "blob": 0.5, "language": 0.05, "run": 0.02}
# Below this many tokens, an error counts by its size and not by its share.
FEW_TOKENS = 20
RIDGE = 1e-5
# Any two prices have to fit into a byte together, in hundredths of a token.
DEAREST = 1.27
# Nearly all of the data's traditional Chinese is classical poems, and modern prose takes fewer tokens.
DEAREST_HAN = 1.6

# Universal Declaration of Human Rights, first article.
LANGUAGES = {
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
        "begabt und sollen einander im Geist der Brüderlichkeit begegnen."
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
        "conscience et doivent agir les uns envers les autres dans un esprit de fraternité."
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
        "conciencia, deben comportarse fraternalmente los unos con los otros."
    ),
    "pt": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e de "
        "consciência, devem agir uns para com os outros em espírito de fraternidade."
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem "
        "i sumieniem i powinni postępować wobec innych w duchu braterstwa."
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a "
        "mají spolu jednat v duchu bratrství."
    ),
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve "
        "birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler."
    ),
    "vi": (
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con người đều được "
        "tạo hóa ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu."
    ),
    "fi": (
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki ja "
        "omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä."
    ),
    "uk": (
        "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
        "повинні діяти у відношенні один до одного в дусі братерства."
    ),
    "bg": (
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва "
        "да се отнасят помежду си в дух на братство."
    ),
    "el": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι "
        "με λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης."
    ),
    "he": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג "
        "איש ברעהו ברוח של אחווה."
    ),
    "hy": (
        "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։ Նրանք ունեն "
        "բանականություն ու խիղճ և միմյանց պետք է եղբայրաբար վերաբերվեն։"
    ),
    "ka": (
        "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ მინიჭებული აქვთ გონება "
        "და სინდისი და ერთმანეთის მიმართ უნდა იქცეოდნენ ძმობის სულისკვეთებით."
    ),
    "th": ("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ"),
    "bn": (
        "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে। তাঁদের বিবেক এবং বুদ্ধি আছে; সুতরাং "
        "সকলেরই একে অপরের প্রতি ভ্রাতৃত্বসুলভ মনোভাব নিয়ে আচরণ করা উচিত।"
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और "
        "अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।"
    ),
    "ta": (
        "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும், உரிமைகளிலும் சமமானவர்கள், "
        "அவர்கள் நியாயத்தையும் மனச்சாட்சியையும் இயற்பண்பாகப் பெற்றவர்கள். அவர்கள் ஒருவருடனொருவர் சகோதர உணர்வுப் "
        "பாங்கில் நடந்துகொள்ளல் வேண்டும்."
    ),
    "te": (
        "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు. వారు వివేదన-అంతఃకరణ "
        "సంపన్నులగుటచే పరస్పరము భ్రాతృభావముతో వర్తింపవలయును."
    ),
    "ar": (
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح "
        "الإخاء."
    ),
    "fa": (
        "تمام افراد بشر آزاد به دنیا می‌آیند و از لحاظ حیثیت و حقوق با هم برابرند. همه دارای عقل و وجدان هستند و "
        "باید نسبت به یکدیگر با روح برادری رفتار کنند."
    ),
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。",
    "zh-tw": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心,並應以兄弟關係的精神互相對待。",
    "ja": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。"
        "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。"
    ),
    "ko": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. "
        "인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다."
    ),
    "am": "የሰው ልጅ ሁሉ ሲወለድ ነጻና በክብርና በመብትም እኩልነት ያለው ነው። የተፈጥሮ ማስተዋልና ሕሊና ስላለው አንዱ ሌላውን በወንድማማችነት መንፈስ መመልከት ይገባዋል።",
    "km": "មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព ក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរនិងសិទ្ធិ។",
    "my": ("လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း၊ တူညီလွတ်လပ်သော အခွင့်အရေးများဖြင့် လည်းကောင်း၊ မွေးဖွားလာသူများ ဖြစ်သည်။"),
}


class Chunk(NamedTuple):
    """A piece of text, what it was taken from, and how often each feature occurs in it."""

    source: str
    kind: str
    of: str
    counts: dict[str, int]
    tokens: int


Prices = dict[str, float]


def main() -> None:
    """Fit, print the errors, write the constants."""
    if not (DATA / "outputs" / "manifest.json").exists():
        sys.exit(f"no data at {DATA}: set HOLDFAST_DATA to the folder that holds outputs/ and the traces")
    count = exact_counter()
    chunks = [Chunk(source, kind, of, features(text), count(text)) for source, kind, of, text in texts() if text]
    sums = {kind: Sums(chunks_of(chunks, kind)) for kind in sorted({chunk.kind for chunk in chunks})}
    prices = {name: round(price, 2) for name, price in fitted(list(sums.values())).items()}
    print_errors("as fitted", chunks, dict.fromkeys(sums, prices), sources=tuple(WEIGHTS))
    others = {left: [sums[kind] for kind in sums if kind != left] for left in sums}
    held_out = {left: fitted(others[left]) for left in sums}
    print_errors("each kind by the prices of the others", chunks, held_out, sources=("payload", "trace", "blob"))
    CONSTANTS.write_text(as_module(prices), encoding="utf-8")


# What is fitted to


def texts() -> Iterator[tuple[str, str, str, str]]:
    """Yield source, kind, name and text of every chunk."""
    for entry in json.loads((DATA / "outputs" / "manifest.json").read_text(encoding="utf-8")):
        payload = (DATA / "outputs" / entry["file"]).read_bytes().decode("utf-8", "replace")
        for chunk in evenly(chunks_of_text(payload), CHUNKS_OF_A_PAYLOAD):
            yield "payload", entry["kind"], entry["file"], chunk
    for kind, messages in sorted(messages_by_kind().items()):
        for message in evenly(messages, MESSAGES_OF_A_ROLE):
            for chunk in evenly(chunks_of_text(message), CHUNKS_OF_A_MESSAGE):
                yield "trace", kind, kind, chunk
    for language, sentence in LANGUAGES.items():
        yield "language", f"language {language}", language, sentence * 4
    yield from synthetic()


def messages_by_kind() -> dict[str, list[str]]:
    """Return what was said, by file and role; arguments of tool calls count as a role."""
    messages = defaultdict(list)
    for name in ("swe", "tau", "web"):
        with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for role, text in (said for line in lines for said in sayings(json.loads(line))):
                messages[f"{name} {role}"].append(text)
    return messages


def sayings(run: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield role and text of all that was said in a run."""
    yield "system", run.get("system") or ""
    for message in run["messages"]:
        yield message["role"], message["content"] or ""
        for call in message.get("tool_calls") or ():
            yield "arguments", call["function"]["arguments"]


def synthetic() -> Iterator[tuple[str, str, str, str]]:
    """Yield what is rare in the data, and must not be free for that."""
    dice = random.Random(0)
    for _ in range(6):
        yield "blob", "base64", "base64", base64.b64encode(dice.randbytes(1_500)).decode()
        yield "blob", "hex", "hex", dice.randbytes(1_000).hex()
    for character in 'aA1-=.*#_ \n"(':
        yield "run", f"run of {character!r}", character, character * 1_000


def chunks_of_text(text: str) -> list[str]:
    return [text[start : start + CHUNK] for start in range(0, len(text), CHUNK)]


def evenly(items: Sequence[str], most: int) -> list[str]:
    """Return at most *most* of the items, spread evenly."""
    return list(items) if len(items) <= most else [items[index * len(items) // most] for index in range(most)]


def features(text: str) -> dict[str, int]:
    """Return how often each priced feature occurs in *text*."""
    data = text.encode("utf-8", "surrogatepass")
    signs = Counter(map(estimator.signs_of, estimator.trios_of(data)))
    return {
        name: sum(count for trio, count in signs.items() if re.fullmatch(pattern, trio))
        for name, pattern in estimator.PATTERNS.items()
    } | dict(estimator.script_counts(text, data))


# Fitting


class Sums:
    """What least squares need to know of the chunks of one kind; sums of sums are those of several kinds."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.products: dict[tuple[str, str], float] = defaultdict(float)
        self.targets: dict[str, float] = defaultdict(float)
        for chunk in chunks:
            self._add(chunk, WEIGHTS[chunk.source] / len(chunks) / max(chunk.tokens, FEW_TOKENS) ** 2)

    def _add(self, chunk: Chunk, weight: float) -> None:
        present = [(name, count) for name, count in chunk.counts.items() if count]
        for name, count in present:
            self.targets[name] += weight * count * chunk.tokens
            for other, other_count in present:
                self.products[name, other] += weight * count * other_count


def fitted(kinds: Sequence[Sums]) -> Prices:
    """Return the prices of least squared relative error, none of them negative or beyond its bound."""
    targets = total([kind.targets for kind in kinds])
    names = list(targets)
    products = total([kind.products for kind in kinds])
    rows = {name: [(other, products[name, other]) for other in names if products.get((name, other))] for name in names}
    prices = dict.fromkeys(names, 0.0)
    for _ in range(3_000):
        if max([improved(name, prices, rows[name], targets[name]) for name in names]) < 1e-6:
            break
    return prices


def improved(name: str, prices: Prices, row: Sequence[tuple[str, float]], target: float) -> float:
    """Set one price to the best for the others as they are, and return by how much it changed."""
    own = dict(row)[name]
    slope = target - sum(product * prices[other] for other, product in row) - RIDGE * own * prices[name]
    before = prices[name]
    prices[name] = min(max(0.0, before + slope / (own * (1 + RIDGE))), dearest(name))
    return abs(prices[name] - before)


def dearest(name: str) -> float:
    """Return the bound of a price."""
    return DEAREST if name in estimator.PATTERNS else DEAREST_HAN if name == "other han" else float("inf")


def total(summands: Sequence[Mapping]) -> dict:
    sums = defaultdict(float)
    for summand in summands:
        for name, value in summand.items():
            sums[name] += value
    return dict(sums)


# Telling


def chunks_of(chunks: Sequence[Chunk], kind: str) -> list[Chunk]:
    return [chunk for chunk in chunks if chunk.kind == kind]


def print_errors(title: str, chunks: Sequence[Chunk], prices: Mapping[str, Prices], *, sources: Sequence[str]) -> None:
    """Print the errors, *prices* being those for each kind."""
    print(f"\n{title}")
    for source in sources:
        own = [chunk for chunk in chunks if chunk.source == source]
        kinds = {kind: error(chunks_of(own, kind), prices[kind]) for kind in sorted({chunk.kind for chunk in own})}
        names = sorted({(chunk.kind, chunk.of) for chunk in own})
        each = [error([c for c in own if (c.kind, c.of) == name], prices[name[0]]) for name in names]
        worst = sorted(kinds, key=lambda kind: -abs(kinds[kind]))[:8]
        print(f"  {source}: mean {mean(map(abs, each)):.1%} of {len(each)}, worst kinds:", end=" ")
        print(", ".join(f"{kind} {kinds[kind]:+.1%}" for kind in worst))


def error(chunks: Sequence[Chunk], prices: Prices) -> float:
    """Return by what share the estimate is beside the tokens of all the chunks together."""
    estimate = sum(prices.get(name, 0.0) * count for chunk in chunks for name, count in chunk.counts.items())
    return estimate / sum(chunk.tokens for chunk in chunks) - 1


def as_module(prices: Prices) -> str:
    names = [*estimator.PATTERNS, *sorted(set(prices).difference(estimator.PATTERNS))]
    lines = [f'    "{name}": {round(100 * prices.get(name, 0.0))},' for name in names]
    return "\n".join([HEAD, *lines, "}", ""])


HEAD = '''\
"""What the features of `holdfast.tokens.text` cost, in hundredths of a token.

Written by tools/fit_token_estimator.py, fitted to o200k_base.
"""

from __future__ import annotations

__all__ = ["COSTS"]

COSTS = {'''


if __name__ == "__main__":
    main()
