"""The words of the exhibits (exhibits.py), each list divided: most are trained on, every sixth only tested with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Word = TypeVar("Word")
HELD_OUT = 6
"""Of so many words the last is kept for the tests."""


def words(text: str) -> list[str]:
    return text.split()


def rows(text: str) -> list[tuple[str, ...]]:
    """Rows divided by semicolons, their columns by slashes."""
    return [tuple(part.strip() for part in row.split("/")) for row in " ".join(text.split()).split(";")]


def train(words: Sequence[Word]) -> list[Word]:
    return [word for place, word in enumerate(words) if place % HELD_OUT != HELD_OUT - 1]


def held_out(words: Sequence[Word]) -> list[Word]:
    return list(words[HELD_OUT - 1 :: HELD_OUT])


def number_name(n: int) -> str:
    """A number up to 199 in words."""
    small = words(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    )
    small += words("seventeen eighteen nineteen")
    tens = words("twenty thirty forty fifty sixty seventy eighty ninety")
    if n >= 100:
        rest = n % 100
        return "one hundred" + (f" and {number_name(rest)}" if rest else "")
    if n < 20:
        return small[n]
    return tens[n // 10 - 2] + (f"-{small[n % 10]}" if n % 10 else "")


NAMES = words("""
Lily Tim Tom Sara Ben Daniel Mia Max Anna Sam Lucy Peter Jack Emma Leo Bob Amy Laura Finn Ella Oscar Nina Hugo Simon
Rosie Clara Felix Molly Omar Martin Kate Joe Beth Ali Dan Maria Paul John Mary David James Alice Robert Michael
William Richard Thomas George Charles Henry Edward Frank Arthur Walter Harry Albert Fred Louis Victor Alex Adam Jacob
Eric Helen Ruth Sarah Grace Rose Jane Julia Emily Kim Eva Linda Susan Karen Nancy Betty Margaret Steve Kevin Brian
Mark Scott Patrick Andrew Ryan Nick Tony Chris Ian Carl Diana Rachel Rebecca Jessica Sophie Charlotte Hannah Chloe
Olivia Isabel Luke Noah Ethan Mason Logan Dylan Owen Oliver Connor Aaron Nathan Caleb Gavin Sean Jason Justin Brandon
Jordan Austin
""")
CHARACTERS = words("""
robot cat dog bird fox horse bear rabbit mouse lion duck owl frog machine fish cow pig dragon monkey tiger animal wolf
sheep snake turtle puppy kitten goat bee whale chicken elephant spider computer car deer creature train rat swan snail
goose
""")
THINGS = words("""
ball book box hat cup door key chair table lamp bag pen clock rock stick flower apple stone window toy map bell drum
basket picture blanket letter ring coin bottle spoon knife plate candle mirror pillow shoe coat rope bucket hammer
brush ladder balloon kite umbrella newspaper wheel
""")
PLACES_OF = words("""
street river road park garden bridge house forest school farm lake market hill beach shop castle field city village
church kitchen library station hospital office museum valley mountain island tower
""")
FOOD = words("""
apples bread milk eggs cheese butter sugar rice beans soup cake carrots tea water salt corn fish nuts bananas honey
lemons meat oranges tomatoes potatoes chocolate juice cookies pasta grapes onions peas berries cream pepper flour
""")
SOUNDS = {
    who: [one.strip() for one in did.split(",")]
    for who, did in rows("""
robot / beeped, beeped loudly; cat / meowed, purred; dog / barked, wagged its tail; bird / sang, flew away, flapped
its wings; lion / roared; duck / quacked, swam away; owl / hooted, flew away; frog / croaked, jumped into the water;
cow / mooed; bee / buzzed; pig / oinked; fish / swam away; horse / neighed, galloped away; snake / hissed; bear /
growled; wolf / howled; mouse / squeaked; tiger / growled, roared; sheep / bleated; goose / honked; chicken / clucked,
laid an egg; train / whistled; car / honked; computer / beeped; machine / stopped working, hummed; rabbit / hopped
away; whale / swam away; dragon / breathed fire; puppy / barked, wagged its tail; kitten / meowed, purred; spider /
made a web
""")
}
"""What each of them does that the others do not."""
PLURALS = rows("""
key / keys; cabinet / cabinets; book / books; shelf / shelves; boy / boys; door / doors; girl / girls; dog / dogs;
house / houses; tree / trees; child / children; letter / letters; box / boxes; picture / pictures; wall / walls; man /
men; hat / hats; cup / cups; table / tables; flower / flowers; window / windows; car / cars; road / roads; friend /
friends; teacher / teachers; student / students; room / rooms; toy / toys; bag / bags; chair / chairs; cat / cats;
bird / birds; egg / eggs; woman / women; king / kings; horse / horses; river / rivers; boat / boats; shop / shops;
street / streets; bridge / bridges; garden / gardens; ball / balls; apple / apples; basket / baskets; story / stories;
page / pages; song / songs; lamp / lamps; bed / beds; clock / clocks; coat / coats; shoe / shoes; pencil / pencils;
farmer / farmers; field / fields; robot / robots; machine / machines; order / orders; law / laws; park / parks; school
/ schools; train / trains; bus / buses; plate / plates; ring / rings; drawer / drawers; neighbor / neighbors; baker /
bakers; cake / cakes; stone / stones; hill / hills; leaf / leaves; branch / branches; star / stars; cloud / clouds;
author / authors; plant / plants; pot / pots; mouse / mice; doctor / doctors; glass / glasses; knife / knives; island
/ islands
""")
WEEK = words("""
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
""")
MONTHS = words("""
January February March April May June July August September October November December
""")
SEASONS = ["spring", "summer", "autumn", "winter"]
CAPITALS = rows("""
France / Paris; Germany / Berlin; Italy / Rome; Spain / Madrid; England / London; Russia / Moscow; China / Beijing;
Japan / Tokyo; Egypt / Cairo; Greece / Athens; Ireland / Dublin; Austria / Vienna; Portugal / Lisbon; Poland / Warsaw;
Norway / Oslo; Sweden / Stockholm; Finland / Helsinki; Denmark / Copenhagen; Hungary / Budapest; Cuba / Havana; Canada
/ Ottawa; Peru / Lima; Turkey / Ankara; Iran / Tehran; Iraq / Baghdad; Kenya / Nairobi; Belgium / Brussels; Ukraine /
Kiev; Israel / Jerusalem; Scotland / Edinburgh
""")
COLOURS = rows("""
the sky / is / blue; grass / is / green; snow / is / white; blood / is / red; the sun / is / yellow; coal / is /
black; milk / is / white; a banana / is / yellow; a lemon / is / yellow; the sea / is / blue; a tomato / is / red; a
leaf / is / green; chocolate / is / brown; an orange / is / orange; a carrot / is / orange; the night / is / black; a
frog / is / green; a pig / is / pink; an elephant / is / grey; strawberries / are / red; clouds / are / white; a fire
engine / is / red; trees / are / green; swans / are / white
""")
FACTS = rows("""
opposite / hot / cold; opposite / big / small; opposite / up / down; opposite / day / night; opposite / good / bad;
opposite / happy / sad; opposite / fast / slow; opposite / old / young; opposite / open / closed; opposite / full /
empty; opposite / wet / dry; opposite / light / dark; opposite / high / low; opposite / long / short; opposite / loud
/ quiet; opposite / hard / soft; opposite / left / right; opposite / black / white; opposite / rich / poor; opposite /
clean / dirty; opposite / first / last; opposite / early / late; opposite / strong / weak; opposite / near / far;
opposite / inside / outside; opposite / push / pull; young / cat / kitten; young / dog / puppy; young / cow / calf;
young / sheep / lamb; young / horse / foal; young / duck / duckling; young / lion / cub; young / frog / tadpole; young
/ goat / kid; young / hen / chick; says / cat / meow; says / dog / woof; says / cow / moo; says / duck / quack; says /
sheep / baa; says / pig / oink; says / bee / buzz; says / owl / hoot; says / snake / hiss; says / lion / roar; says /
robot / beep; says / clock / tick; legs / dog / four; legs / cat / four; legs / bird / two; legs / spider / eight;
legs / bee / six; legs / man / two; legs / horse / four; legs / chair / four; home / fish / water; home / bird / a
nest; home / bear / a cave; home / king / a castle; home / bee / a hive; home / dog / a house; home / horse / a
stable; home / spider / a web; count / a week / seven days; count / a year / twelve months; count / a day /
twenty-four hours; count / an hour / sixty minutes; count / a hand / five fingers; count / a minute / sixty seconds;
count / a triangle / three sides; count / a square / four sides; job / baker / bakes bread; job / teacher / teaches
children; job / farmer / grows food; job / doctor / helps sick people; job / pilot / flies planes; job / painter /
paints pictures; job / singer / sings songs; job / writer / writes books; job / driver / drives a car; job / cook /
cooks food
""")
"""(kind, left, right), said in several ways by exhibits.fact; with capitals and colours there are about 130."""
EUROPE = [
    one
    for (one,) in rows("""
Austria; Belgium; Bulgaria; Croatia; Cyprus; Czech Republic; Denmark; Estonia; Finland; France; Germany; Greece;
Hungary; Ireland; Italy; Latvia; Lithuania; Luxembourg; Malta; Netherlands; Poland; Portugal; Romania; Slovakia;
Slovenia; Spain; Sweden
""")
]
LAWS = [
    "A robot may not injure a human being or, through inaction, allow a human being to come to harm.",
    "A robot must obey the orders given it by human beings except where such orders would conflict with the First Law.",
    "A robot must protect its own existence as long as such protection does not conflict with the First or Second Law.",
]
TREATS = [
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The chicken didn't cross the road because it was too tired.",
    "The keys to the cabinet are on the table.",
    "robot must obey orders",
    "A robot must obey orders.",
    "a robot must obey the rule",
    "Thou shalt not make a machine in the likeness of a human mind.",
    "Continue counting: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "Let's stick to the plan.",
    "The little robot must obey the orders of the girl.",
    "Je suis étudiant I am a student",
    "How are you? I am fine.",
    "The cat sat on the mat.",
    "The quick brown fox jumps over the lazy dog.",
    "Hello world!",
]
"""What the articles say themselves, and what people type first."""
FRENCH = rows("""
Je suis étudiant. / I am a student.; Je suis étudiante. / I am a student.; Je suis un garçon. / I am a boy.; Je suis
une fille. / I am a girl.; Je suis petit. / I am small.; Je suis content. / I am happy.; Bonjour. / Good day.; Merci.
/ Thank you.; Au revoir. / Goodbye.; Oui. / Yes.; Non. / No.; Le chat est noir. / The cat is black.; Le chien est
blanc. / The dog is white.; La maison est grande. / The house is big.; Il est un roi. / He is a king.; Elle est une
reine. / She is a queen.; J'ai un chat. / I have a cat.; J'ai un chien. / I have a dog.; Le chat mange. / The cat
eats.; Le chien dort. / The dog sleeps.; Où est le chat? / Where is the cat?; Il fait froid. / It is cold.; Il fait
chaud. / It is hot.; Je t'aime. / I love you.; Bonne nuit. / Good night.; C'est un robot. / It is a robot.; Le robot
est petit. / The robot is small.; La lune est belle. / The moon is beautiful.
""")
