/** Texts to learn that are old enough to belong to everyone, and repeat enough to be learned in a minute. */

import type { Language } from '../../lib/catalogue';

const verse = ['the malt\nThat lay in', 'the rat,\nThat ate', 'the cat,\nThat killed', 'the dog,\nThat worried', 'the cow with the crumpled horn,\nThat tossed'];
const jack = Array.from({ length: verse.length + 1 }, (_, n) => `This is ${verse.slice(0, n).reverse().map((one) => `${one} `).join('')}the house that Jack built.\n`).join('\n');

const pullers = ['дедка', 'бабка', 'внучка', 'Жучка', 'кошка', 'мышка'];
const whom = ['репку', 'дедку', 'бабку', 'внучку', 'Жучку', 'кошку'];
const chain = (n: number): string => Array.from({ length: n + 1 }, (_, i) => `${pullers[n - i]} за ${whom[n - i]}`).join(', ');
const called = ['Позвал дед бабку:', 'Позвала бабка внучку:', 'Позвала внучка Жучку:', 'Позвала Жучка кошку:', 'Позвала кошка мышку:'];
const turnip = `Посадил дед репку. Выросла репка большая-пребольшая. Стал дед репку из земли тащить: тянет-потянет, вытянуть не может.\n${called.map((one, n) => `${one} ${chain(n + 1)} – тянут-потянут, ${n === 4 ? 'вытянули репку!' : 'вытянуть не могут.'}\n`).join('')}`;

const classic = `人之初，性本善。性相近，习相远。
苟不教，性乃迁。教之道，贵以专。
昔孟母，择邻处。子不学，断机杼。
窦燕山，有义方。教五子，名俱扬。
养不教，父之过。教不严，师之惰。
子不学，非所宜。幼不学，老何为。
玉不琢，不成器。人不学，不知义。
为人子，方少时。亲师友，习礼仪。
`;

const counting = Array.from({ length: 30 }, (_, n) => `${n + 1} ${n + 2} ${n + 3} ${n + 4} ${n + 5}\n`).join('');

export const TEXTS: Record<string, string> = { jack, turnip, classic, counting };
/** The text that a reader of this language is shown first. */
export const FIRST: Record<Language, string> = { en: 'jack', ru: 'turnip', 'zh-Hans': 'classic' };
