/** The one message catalogue: messages/<language>/<part>.json, the same keys in every language. */

export type Messages = Record<string, string>;
export type Values = Record<string, string | number>;

export const LANGUAGES = { en: 'English', 'zh-Hans': '简体中文', ru: 'Русский' } as const;
export type Language = keyof typeof LANGUAGES;

/** The forms a counted word has, in the order a message gives them. A fraction takes the last but one in Russian: 1,5 токена. */
const FORMS: Record<Language, Intl.LDMLPluralRule[]> = { en: ['one', 'other'], 'zh-Hans': ['other'], ru: ['one', 'few', 'many'] };
const FRACTION: Record<Language, number> = { en: 1, 'zh-Hans': 0, ru: 1 };

const files = import.meta.glob<Messages>('../messages/*/*.json', { eager: true, import: 'default' });

export const catalogue: Record<Language, Messages> = { en: {}, 'zh-Hans': {}, ru: {} };
for (const [path, messages] of Object.entries(files)) {
  const [, language, part] = /messages\/([^/]+)\/([^/]+)\.json$/.exec(path) ?? [];
  for (const [key, message] of Object.entries(messages)) catalogue[language as Language][`${part}.${key}`] = message;
}

/**
 * A message with its values put in. `{name}` is the value, a number with its groups; `{n|# token|# tokens}` is the form that
 * the language wants for the number n, which stands for `#`.
 */
export function compose(message: string, language: Language, values: Values = {}): string {
  const rules = new Intl.PluralRules(language);
  const write = (value: string | number): string => (typeof value === 'number' ? new Intl.NumberFormat(language).format(value) : value);
  return message.replace(/\{(\w+)((?:\|[^|}]*)*)\}/g, (whole, name: string, forms: string) => {
    const value = values[name];
    if (value === undefined) return whole;
    if (!forms) return write(value);
    const at = FORMS[language].indexOf(rules.select(Number(value)));
    const form = forms.slice(1).split('|')[at < 0 ? FRACTION[language] : at] ?? '';
    return form.replace('#', write(value));
  });
}
