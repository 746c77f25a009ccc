/** The one message catalogue: messages/<language>/<part>.json, the same keys in every language. */

export type Message = string | Partial<Record<Intl.LDMLPluralRule, string>>;
export type Messages = Record<string, Message>;

export const LANGUAGES = { en: 'English', 'zh-Hans': '简体中文', ru: 'Русский' } as const;
export type Language = keyof typeof LANGUAGES;

const files = import.meta.glob<Messages>('../messages/*/*.json', { eager: true, import: 'default' });

export const catalogue: Record<Language, Messages> = { en: {}, 'zh-Hans': {}, ru: {} };
for (const [path, messages] of Object.entries(files)) {
  const [, language, part] = /messages\/([^/]+)\/([^/]+)\.json$/.exec(path) ?? [];
  for (const [key, message] of Object.entries(messages)) catalogue[language as Language][`${part}.${key}`] = message;
}

/** A message with its values put in: `{name}`, and for a whole number `n` the form its language wants. */
export function compose(message: Message, language: Language, values: Record<string, string | number> = {}): string {
  const rules = new Intl.PluralRules(language);
  const form = typeof message === 'string' ? message : (message[rules.select(Number(values.n))] ?? message.other ?? '');
  return form.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));
}
