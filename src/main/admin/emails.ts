import { type ApiCommand, each, needed, optional, UsageError } from './command.ts';

/** What whoever has a key does with email. */
export const EMAILS = {
  send: {
    usage: '--to A… [--from A] --subject S [--text T|--html H] [--at TIME]',
    ask: async (api, options) => {
      const to = each(options, 'to');
      if (to.length === 0) throw new UsageError('--to is missing');
      return api.call('POST', '/v1/emails', {
        from: optional(options, 'from') ?? api.from ?? needed(options, 'from'),
        to: to.length === 1 ? to[0] : to,
        subject: needed(options, 'subject'),
        text: optional(options, 'text'),
        html: optional(options, 'html'),
        scheduled_at: optional(options, 'at'),
      });
    },
  },
  'emails list': {
    usage: '[--status S] [--tag NAME:VALUE]… [--limit N] [--cursor C]',
    ask: async (api, options) => {
      const filters = each(options, 'tag').map((tag): [string, string] => ['tag', tag]);
      for (const name of ['status', 'limit', 'cursor']) {
        const value = optional(options, name);
        if (value !== undefined) filters.push([name, value]);
      }
      return api.call('GET', `/v1/emails?${new URLSearchParams(filters).toString()}`);
    },
  },
  'emails show': {
    usage: 'ID',
    ask: async (api, _options, id) => {
      // Other words name other addresses of the API.
      if (!/^em_\w+$/.test(id)) throw new UsageError(`${id} is not the id of an email: they begin with em_`);
      return api.call('GET', `/v1/emails/${id}`);
    },
  },
} satisfies Record<string, ApiCommand>;
