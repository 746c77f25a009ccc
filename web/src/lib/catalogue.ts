/** The one message catalogue: messages/<language>/<part>.json, the same keys in every language. */
import { keys, written } from 'virtual:messages';

export type Messages = Record<string, string>;
export type Values = Record<string, string | number>;

export const LANGUAGES = { en: 'English', 'zh-Hans': '简体中文', ru: 'Русский' } as const;
export type Language = keyof typeof LANGUAGES;

/** The forms a counted word has, in the order a message gives them. A fraction takes the last but one in Russian: 1,5 токена. */
const FORMS: Record<Language, Intl.LDMLPluralRule[]> = { en: ['one', 'other'], 'zh-Hans': ['other'], ru: ['one', 'few', 'many'] };
const FRACTION: Record<Language, number> = { en: 1, 'zh-Hans': 0, ru: 1 };

/** A reader has one language, and only that one's messages are taken apart before the first paint. */
function read(language: Language): Messages {
  const messages = written[language].split('\t'), found: Messages = {};
  let at = 0;
  for (const [part, ...names] of keys.map((some) => some.split('\t'))) for (const name of names) found[`${part}.${name}`] = messages[at++]!;
  return found;
}
const known: Partial<Record<Language, Messages>> = {};
export const catalogue = (language: Language): Messages => (known[language] ??= read(language));

/** Making one takes longer than all that a page says with it. */
const rules: Partial<Record<Language, Intl.PluralRules>> = {};
const numbers: Partial<Record<Language, Intl.NumberFormat>> = {};

/**
 * A message with its values put in. `{name}` is the value, a number with its groups; `{n|# token|# tokens}` is the form that
 * the language wants for the number n, which stands for `#`.
 */
export function compose(message: string, language: Language, values: Values = {}): string {
  if (!message.includes('{')) return message;
  // A browser's first formatter takes ten milliseconds: small numbers, the only ones before the first paint, need none.
  const plain = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 1000;
  const write = (value: string | number): string => (typeof value === 'string' ? value : plain(value) ? String(value) : (numbers[language] ??= new Intl.NumberFormat(language)).format(value));
  return message.replace(/\{(\w+)((?:\|[^|}]*)*)\}/g, (whole, name: string, forms: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (!forms) return write(value);
    const at = FORMS[language].indexOf((rules[language] ??= new Intl.PluralRules(language)).select(Number(value)));
    const form = forms.slice(1).split('|')[at < 0 ? FRACTION[language] : at] ?? '';
    return form.replace('#', write(value));
  });
}
