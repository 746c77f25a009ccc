/** What belongs to the reader, not to the view: language, theme, keys. Kept in this browser. */

import { flushSync } from 'svelte';
import { catalogue, compose, LANGUAGES, type Language, type Values } from '../lib/catalogue';

export type Theme = 'auto' | 'light' | 'dark';

export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(`cutaway.${name}`);
  } catch {
    return null; // a browser that keeps nothing still works
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(`cutaway.${name}`, value);
  } catch {
    // as above
  }
}

export function asLanguage(tag: string | null | undefined): Language | null {
  if (!tag) return null;
  if (tag in LANGUAGES) return tag as Language;
  const short = tag.toLowerCase().split('-')[0];
  return short === 'zh' ? 'zh-Hans' : short === 'ru' ? 'ru' : short === 'en' ? 'en' : null;
}

class Preferences {
  language = $state<Language>('en');
  theme = $state<Theme>('auto');
  /** Whether letters, digits and signs alone are shortcuts. */
  letters = $state(remembered('letters') !== 'off');
  /** Whether the system asks for dark; counts where the theme is auto. */
  systemDark = $state(false);
  /** Paper is light, whatever is worn on the screen. */
  paper = $state(false);
  dark = $derived(!this.paper && (this.theme === 'dark' || (this.theme === 'auto' && this.systemDark)));

  start(asked: { lang?: string; theme?: string }): void {
    const wanted = [asked.lang, remembered('language'), ...navigator.languages].map(asLanguage).find(Boolean);
    this.language = wanted ?? 'en';
    const theme = asked.theme ?? remembered('theme');
    if (theme === 'light' || theme === 'dark') this.theme = theme;
    const system = matchMedia('(prefers-color-scheme: dark)');
    this.systemDark = system.matches;
    system.addEventListener('change', () => (this.systemDark = system.matches));
    const paper = matchMedia('print');
    paper.addEventListener('change', () => {
      this.paper = paper.matches;
      flushSync(); // what is printed is what stands there now
    });
    $effect.root(() => {
      $effect(() => {
        document.documentElement.lang = this.language;
        document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
      });
    });
  }

  speak(language: Language): void {
    this.language = language;
    remember('language', language);
  }

  useLetters(on: boolean): void {
    this.letters = on;
    remember('letters', on ? 'on' : 'off');
  }

  wear(theme: Theme): void {
    this.theme = theme;
    remember('theme', theme);
  }
}

export const preferences = new Preferences();

/** The message of this key in the reader's language. */
export function t(key: string, values?: Values): string {
  const message = catalogue(preferences.language)[key] ?? catalogue('en')[key];
  return message === undefined ? key : compose(message, preferences.language, values);
}

export const known = (key: string): boolean => key in catalogue(preferences.language);
