import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isMachine, isScan } from '../../src/domain/email/machines.ts';

const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36';

const PEOPLE: readonly (readonly [string, string])[] = [
  ['a browser', CHROME],
  [
    'a phone',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
  ],
  [
    'Apple Mail without its proxy',
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)',
  ],
  ["Gmail's image proxy", 'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)'],
  ["Yahoo's image proxy", 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
  ['Outlook for Windows', 'Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.14326; Pro)'],
  ['Outlook for iOS', 'Outlook-iOS/2.0'],
  ['Thunderbird', 'Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Thunderbird/115.3.1'],
  ...[
    'Microsoft Outlook 16.0.12026',
    'Mail/3654.60.1',
    'Airmail/5',
    'K-9 Mail/6.0',
    'Claws Mail',
    'YahooMobileMail/1.0 (Android Mail; 5.0)',
    'Postbox/7.0.56',
    'Evolution/3.2',
    'eM Client/9',
    'Mailbird/2.9',
    'Spark/3',
    'Superhuman/1.0',
    'Zimbra/9',
  ].map((agent) => [agent, agent] as const),
];

const MACHINES: readonly (readonly [string, string | undefined])[] = [
  ['Apple Mail Privacy Protection', 'Mozilla/5.0'],
  ['no user agent', undefined],
  ['an empty user agent', ' '],
  ['a scanner that names itself', 'BarracudaCentral'],
  ['a headless browser', CHROME.replace('Chrome', 'HeadlessChrome')],
  ['a crawler', 'Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)'],
  ['a preview of a chat', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
  ['an HTTP library', 'python-requests/2.31.0'],
  [
    'a crawler of a mail service',
    'Mozilla/5.0 (compatible; Linux x86_64; Mail.RU_Bot/2.0; +https://help.mail.ru/webmaster)',
  ],
];

describe('a request for a tracking link', () => {
  for (const [name, userAgent] of PEOPLE) {
    it(`by ${name} is a person's`, () => assert.equal(isMachine({ userAgent, purposes: [] }), false));
  }
  for (const [name, userAgent] of MACHINES) {
    it(`by ${name} is a machine's`, () => assert.equal(isMachine({ userAgent, purposes: [] }), true));
  }

  it('that loads a page in advance is a machine’s, whatever the browser', () => {
    for (const purpose of ['prefetch', 'prefetch;prerender', 'Prefetch;anonymous-client-ip', 'preview']) {
      assert.equal(isMachine({ userAgent: CHROME, purposes: [purpose] }), true, purpose);
    }
    assert.equal(isMachine({ userAgent: CHROME, purposes: ['navigate'] }), false);
  });
});

describe('a burst of clicks', () => {
  it('is a scan if it is on several links', () => {
    assert.equal(isScan([]), false);
    assert.equal(isScan(['https://a.example', 'https://a.example']), false);
    assert.equal(isScan(['https://a.example', 'https://b.example']), true);
  });
});
