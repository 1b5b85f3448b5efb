// uPlot asks how the browser's language writes numbers, and throws where that is no language tag (BCP 47): a browser
// under the locale C.UTF-8 calls its own `en-US@posix`.
try {
  Intl.getCanonicalLocales(navigator.language);
} catch {
  Object.defineProperty(navigator, 'language', { value: 'en-US' });
}
