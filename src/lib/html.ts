/** Escaped HTML. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for content and quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** Template tag that escapes its values unless they are `Html`. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  const texts = values.map((value) =>
    [value]
      .flat()
      .map((part) => (part instanceof Html ? part.text : escapeHtml(String(part))))
      .join(''),
  );
  return new Html(String.raw({ raw: strings }, ...texts));
}
