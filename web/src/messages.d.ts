/** Made of messages/<language>/<part>.json by scripts/messages.mjs. */
declare module 'virtual:messages' {
  /** For each part its name, then its keys, tabs between. */
  export const keys: string[];
  /** The messages of each language, in the order of the keys, tabs between. */
  export const written: Record<'en' | 'zh-Hans' | 'ru', string>;
}
