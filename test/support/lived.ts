export { unstalledMs as lived } from './unstalled-time.ts';
