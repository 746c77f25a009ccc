const __vite__mapDeps=(i,m=__vite__mapDeps,d=(m.f||(m.f=["./Attention.js","./kit.js","./kit.css","./Attention.css","./Causes.js","./Causes.css","./Change.js","./Change.css","./Contest.js","./Contest.css","./Encoder.js","./Encoder.css","./Gallery.js","./weights.js","./Gallery.css","./Generate.js","./Generate.css","./Jobs.js","./Jobs.css","./Layers.js","./Layers.css","./Learn.js","./Learn.css","./CausalMap.js","./CausalMap.css","./Neurons.js","./Neurons.css","./Piano.js","./ink.js","./Piano.css","./Predict.js","./Predict.css","./Senses.js","./Senses.css","./Tasks.js","./Tasks.css","./Translator.js","./stage.js","./stage.css","./Translator.css","./Walk.js","./Walk.css","./Weights2.js","./Weights.css","./Remote.js","./Remote.css"])))=>i.map(i=>d[i]);
import{$t as e,A as t,An as n,At as r,B as i,Bn as a,Bt as o,Cn as s,Ct as c,Dn as l,Dt as u,En as d,Fn as f,Ft as p,G as m,Gt as h,H as g,Hn as _,I as v,In as y,J as b,Jt as x,K as S,Kt as C,Ln as w,Lt as T,M as E,Mn as D,Mt as O,N as k,Nn as A,Nt as j,On as M,Ot as N,Pt as ee,Q as te,Qt as P,Rn as F,Sn as ne,St as re,Tn as I,Ut as ie,V as L,Vn as ae,W as oe,Wt as se,X as ce,Z as R,Zt as le,_n as z,_t as ue,an as de,bn as B,bt as fe,cn as pe,ct as me,dn as V,dt as he,fn as ge,ft as H,gn as U,gt as _e,hn as ve,ht as W,in as ye,it as be,j as xe,jn as Se,kn as G,kt as Ce,ln as we,mt as Te,nn as Ee,nt as De,on as Oe,ot as ke,pn as K,pt as Ae,q as je,qt as Me,rn as Ne,rt as Pe,sn as q,st as Fe,tn as Ie,un as J,vn as Y,vt as Le,wn as X,wt as Re,xn as ze,yn as Be,yt as Ve,z as He,zn as Ue}from"./kit.js";var We=(new URLSearchParams(location.search).get(`side`)??``)||null,Ge={predict:`next`,change:`next`,map:`next`,walk:`stream`,attention:`attention`,layers:`layers`,causes:`causes`,neurons:`neurons`,generate:`written`,weights:`weights`},Z=new class{frames={};#e={};#t=A(null);get answer(){return B(this.#t)}set answer(e){D(this.#t,e)}get pairs(){return this.answer?.value?.pairs??[]}get of(){return Ge[R.page]??null}sideOf(e){let{model:t,text:n,more:r,beside:i}=R;if(e===`left`||!i)return{model:t,text:n,more:r};let a=i.text===void 0&&i.model===void 0;return{model:i.model??t,text:i.text??n,more:a?r:[]}}compare(){this.answer=u(()=>{if(!R.beside)return null;let[e,t]=[this.sideOf(`left`),this.sideOf(`right`)],{layer:n,head:r,position:i}=R,a={left:e,right:t,of:this.of??`next`,layer:n,head:r,position:i??-1,other:R.beside.position??null};return n=>N(()=>Ce(`beside`,a,n),async()=>{for(let{model:r}of[e,t])await fe.wake(r,n)})},{wait:120})}#n(e,t){if(e===null)return null;let n=t===`left`?`right`:`left`,r=0;for(let i of this.pairs)if(r=i[n]??r,i[t]===e)break;return r}#r(e){let t={...R.place(),...this.sideOf(e),tour:``,own:!1,beside:null};return e===`left`?t:{...t,position:R.beside?.position??this.#n(R.position,`left`)}}start(e){return`?side=${e}${this.#e[e]=j(this.#r(e))}`}tell(){let{language:e,theme:t}=H;for(let n of[`left`,`right`]){let r=j(this.#r(n)),i=this.pairs.filter(e=>!e.same&&e[n]!==null).map(e=>e[n]);this.#e[n]=r,this.frames[n]?.contentWindow?.postMessage({cutaway:`show`,address:r,marks:i,language:e,theme:t},location.origin)}}hear({side:e,address:t}){if(!R.beside||this.#e[e]===t)return;this.#e[e]=t;let{page:n,layer:r,head:i,step:a,settings:o,model:s,text:c,more:l,position:u}=O(t,b);if(R.show({...R.place(),page:n,layer:r,head:i,step:a,settings:o}),e===`left`){Object.assign(R,{model:s,text:c,more:l,position:u}),R.beside.position!==void 0&&(R.beside={...R.beside,position:void 0});return}let d=this.sideOf(`right`),f=this.#n(u,`right`),p=u!==null&&this.#n(f,`left`)!==u;R.beside={text:c===R.text&&R.beside.text===void 0?void 0:c,model:s===d.model?R.beside.model:s,position:p?u??void 0:void 0},p||(R.position=f)}begin(){R.beside={text:R.trace?.text??R.text}}end(){R.beside=null}swap(){let[e,t]=[this.sideOf(`left`),this.sideOf(`right`)];Object.assign(R,{model:t.model,text:t.text,more:[],position:null}),R.beside={text:e.text,model:e.model}}},Ke=new class{#e=A(new Set);get all(){return B(this.#e)}set all(e){D(this.#e,e)}};function qe(){We&&(document.documentElement.dataset.side=We,addEventListener(`message`,({origin:e,source:t,data:n})=>{e===location.origin&&t===parent&&n?.cutaway===`show`&&(H.language=n.language,H.theme=n.theme,Ke.all=new Set(n.marks),j(R.place())!==n.address&&R.show(O(n.address,b)))}),s(()=>{I(()=>parent.postMessage({cutaway:`here`,side:We,address:j(R.place())},location.origin))}))}function Je(e){let t=new Map;for(let n of e.querySelectorAll(`main :is(td, data)`)){if(n.querySelector(`data`)||!/\d/.test(n.textContent)||n.closest(`header, .dock`))continue;let e=n.closest(`[data-exhibit]`)?.dataset.exhibit??``;t.set(e,[...t.get(e)??[],n])}return t}function Ye(e){for(let t of e.querySelectorAll(`[data-differs]`))delete t.dataset.differs,t.removeAttribute(`title`)}function Xe(e,t,n){Ye(e),Ye(t);let[r,i]=[Je(e),Je(t)],a={differ:0,all:0,unlike:!1};for(let e of new Set([...r.keys(),...i.keys()])){let[t,o]=[r.get(e)??[],i.get(e)??[]];t.length===o.length?(a.all+=t.length,t.forEach((e,t)=>{let r=[e,o[t]],[i,s]=r.map(e=>e.textContent.trim());i!==s&&(a.differ+=1,r.forEach((e,t)=>{e.dataset.differs=``,e.title=n(t?i:s)}))})):a.unlike=!0}return a}var Ze=K(` <strong><!></strong>`,1),Qe=K(`<p class="note small"> </p>`),$e=K(`<h2 class="small svelte-1g1s15g"> </h2> <!>`,1),et=K(`<div class="waiting svelte-1g1s15g" aria-hidden="true"></div>`),tt=K(`<div><!></div>`),nt=K(`<p class="standing small quiet svelte-1g1s15g" role="status"> <!></p>`),rt=K(`<p class="standing small quiet svelte-1g1s15g"> </p>`),it=K(`<iframe></iframe>`),at=K(`<section class="sides svelte-1g1s15g"><header class="svelte-1g1s15g"><h1 tabindex="-1" id="page-title" class="svelte-1g1s15g"> </h1> <p class="quiet small"><!> <!></p> <div class="tools svelte-1g1s15g"><button class="button"> </button> <button class="button"> </button></div></header> <!> <!> <div class="frames svelte-1g1s15g"></div></section>`);function ot(t,r){F(r,!0);let i=[`left`,`right`],s=ne(()=>({left:Z.start(`left`),right:Z.start(`right`)}));Z.compare();let c=f(()=>Z.answer),u=f(()=>Z.of&&B(c).value?.of===Z.of?B(c).value:null),p=f(()=>Z.pairs.filter(e=>!e.same).length),h=A(Se({left:!1,right:!1}));I(()=>{j(R.place()),Z.pairs,H.language,H.theme,B(h).left,B(h).right,Z.tell()});let g=f(()=>!Z.of&&R.page!==`jobs`),_=A(null);I(()=>{R.page,H.language,D(_,null);let e=i.map(e=>Z.frames[e]?.contentDocument).filter(e=>e!=null);if(!B(g)||!B(h).left||!B(h).right||e.length<2)return;let t,n=()=>{clearTimeout(t),t=setTimeout(()=>D(_,Xe(e[0],e[1],e=>W(`beside.there`,{other:e}))),200)},r=new MutationObserver(n);for(let t of e)r.observe(t.body,{childList:!0,subtree:!0,characterData:!0});return n(),()=>{clearTimeout(t),r.disconnect(),e.forEach(Ye)}});function v(e){let t=i.find(t=>Z.frames[t]?.contentWindow===e.source);t&&e.origin===location.origin&&e.data?.cutaway===`here`&&(B(h)[t]||D(h,{...B(h),[t]:!0},!0),Z.hear(e.data))}function y(e){e.layer!==null&&e.layer!==void 0&&(R.layer=e.layer),e.neuron!==null&&e.neuron!==void 0&&R.set(`neuron`,e.neuron),e.position!==null&&e.position!==void 0&&R.page!==`attention`?R.choose(e.position):e.position!==null&&e.position!==void 0&&R.set(`key`,e.position)}function b(e){let t=e.name??``;if(B(u)?.of===`neurons`)return W(`beside.neuron`,{n:Number(t)});let n=/^blocks\.(\d+)\.residual$/.exec(t);return n?W(`beside.block`,{n:Number(n[1])}):t===`residual.0`?W(`beside.entry`):t}var x=at();Be(`message`,d,v);var T=l(x),E=l(T),O=G(E,!0),k=n(E,2),N=l(k),ee=e=>{var t=U();X(e=>J(t,e),[()=>W(`beside.tokens`,{n:B(p),all:Z.pairs.length})]),V(e,t)};q(N,e=>{Z.pairs.length&&e(ee)});var te=n(N,2),re=e=>{var t=Ze(),r=M(t),i=n(r),o=l(i);S(o,{get value(){return B(u).distance},as:`percent`}),a(i),X(e=>J(r,`${e??``} `),[()=>W(`beside.distance`)]),V(e,t)};q(te,e=>{B(u)&&B(u).distance!==null&&e(re)}),a(k);var ie=n(k,2),L=l(ie),ae=G(L,!0),se=n(L,2),ce=G(se,!0);a(ie),a(T);var le=n(T,2),z=e=>{var t=tt();let r;var i=l(t),o=e=>{oe(e,{get failure(){return B(c).failure}})},s=e=>{var t=Qe(),n=G(t,!0);X(e=>J(n,e),[()=>W(`beside.unlike`)]),V(e,t)},d=e=>{var t=$e(),r=M(t),i=G(r,!0),a=n(r,2);{let e=f(()=>W(`beside.of_${B(u).of}`)),t=f(()=>B(u).of===`stream`||B(u).of===`weights`);m(a,{get rows(){return B(u).rows},get unit(){return B(u).unit},get label(){return B(e)},naming:b,get apart(){return B(t)},onpick:y})}X(e=>J(i,e),[()=>W(`beside.of_${B(u).of}`)]),V(e,t)},p=e=>{var t=et();V(e,t)};q(i,e=>{B(c).failure?e(o):B(u)?.unlike?e(s,1):B(u)?e(d,2):e(p,-1)}),a(t),X(()=>{r=P(t,1,`found scroll svelte-1g1s15g`,null,r,{busy:B(c).busy}),C(t,`aria-busy`,B(c).busy)}),V(e,t)};q(le,e=>{Z.of&&e(z)});var ue=n(le,2),de=e=>{var t=nt(),r=l(t),i=n(r),o=e=>{var t=U();X(e=>J(t,e),[()=>W(`beside.numbers_unlike`)]),V(e,t)};q(i,e=>{B(_).unlike&&e(o)}),a(t),X(e=>{C(t,`data-marked`,B(_).differ),J(r,`${e??``} `)},[()=>B(_).all?B(_).differ?W(`beside.numbers`,{n:B(_).differ,all:B(_).all}):W(`beside.numbers_alike`,{all:B(_).all}):W(`beside.no_numbers`)]),V(e,t)},fe=e=>{var t=rt(),n=G(t,!0);X(e=>J(n,e),[()=>W(`beside.taught`)]),V(e,t)};q(ue,e=>{B(g)&&B(_)?e(de):R.page===`jobs`&&e(fe,1)});var pe=n(ue,2);ye(pe,20,()=>i,e=>e,(t,n)=>{var r=it();o(r,(e,t)=>Z.frames[t]=e,e=>Z?.frames?.[e],()=>[n]),X(t=>{P(r,1,e(n),`svelte-1g1s15g`),C(r,`src`,s[n]),C(r,`title`,t)},[()=>W(`beside.${n}`)]),V(t,r)}),a(pe),a(x),X((e,t,n,r)=>{C(x,`aria-label`,e),J(O,t),J(ae,n),J(ce,r)},[()=>W(`beside.name`),()=>W(`beside.name`),()=>W(`beside.swap`),()=>W(`beside.end`)]),Y(`click`,L,()=>Z.swap()),Y(`click`,se,()=>Z.end()),V(t,x),w()}z([`click`]);var st=(function(){let e=typeof document<`u`&&document.createElement(`link`).relList;return e&&e.supports&&e.supports(`modulepreload`)?`modulepreload`:`preload`})(),ct=function(e,t){return new URL(e,t).href},lt={},ut=function(e){return e.pathname.endsWith(`.css`)},dt=function(e,t,n){if(t in e)return e[t];let r=n();if(!r){e[t]=void 0;return}let i=r.then(()=>{e[t]=void 0},n=>{throw e[t]=void 0,n});return e[t]=i,i},Q=function(e,t,n){let r=Promise.resolve();if(t&&t.length>0){let e,i=document.querySelector(`meta[property=csp-nonce]`),a=i?.nonce||i?.getAttribute(`nonce`);function o(e){return Promise.all(e.map(e=>Promise.resolve(e).then(e=>({status:`fulfilled`,value:e}),e=>({status:`rejected`,reason:e}))))}function s(e){return import.meta.resolve?new URL(import.meta.resolve(e)):new URL(e,import.meta.url)}r=o(t.map(t=>{t=ct(t,n);let r=s(t),i=ut(r);return dt(lt,r.href,()=>{if(e===void 0){e={all:new Set,styles:new Set};let t=document.getElementsByTagName(`link`);for(let n=t.length-1;n>=0;n--){let r=t[n];e.all.add(r.href),r.rel===`stylesheet`&&e.styles.add(r.href)}}if((i?e.styles:e.all).has(r.href))return;let t=document.createElement(`link`);if(t.rel=i?`stylesheet`:st,i||(t.as=`script`),t.crossOrigin=``,t.href=r.href,a&&t.setAttribute(`nonce`,a),document.head.appendChild(t),i)return new Promise((e,n)=>{let i=a=>{t.removeEventListener(`load`,i),t.removeEventListener(`error`,i),a.type===`error`?n(Error(`Unable to preload CSS for ${r}`)):e(a)};t.addEventListener(`load`,i),t.addEventListener(`error`,i)})})}).filter(e=>e!==void 0))}function i(e){let t=new Event(`vite:preloadError`,{cancelable:!0});if(t.payload=e,window.dispatchEvent(t),!t.defaultPrevented)throw e}return r.then(t=>{for(let e of t||[])e.status===`rejected`&&i(e.reason);return e().catch(i)})},ft=Object.values(Object.assign({"./attention/page.ts":{name:`attention`,order:3,views:[`attention`],icon:`<path d="M5 5c10 0 4 14 14 14M5 19c10 0 4-14 14-14"/>`,load:()=>Q(()=>import(`./Attention.js`),__vite__mapDeps([0,1,2,3]),import.meta.url)},"./causes/page.ts":{name:`causes`,order:5,views:[`saliency`],icon:`<path d="M4 6h5M4 12h3M4 18h5"/><path d="M10 6c5 0 5 6 9 6M8 12h11M10 18c5 0 5-6 9-6"/><circle cx="20" cy="12" r="1.5"/>`,load:()=>Q(()=>import(`./Causes.js`),__vite__mapDeps([4,1,2,5]),import.meta.url)},"./change/page.ts":{name:`change`,order:8,views:[`change`,`attention`],icon:`<path d="M4 7h10M18 7h2M4 17h2M10 17h10"/><circle cx="16" cy="7" r="2"/><circle cx="8" cy="17" r="2"/>`,load:()=>Q(()=>import(`./Change.js`),__vite__mapDeps([6,1,2,7]),import.meta.url)},"./contest/page.ts":{name:`contest`,order:9.7,uncut:!0,icon:`<path d="M4 12h4M8 12c3 0 3-7 6-7h6M8 12c3 0 3 7 6 7h6M8 12h12"/><path d="m18 3 2 2-2 2m0 3 2 2-2 2m0 3 2 2-2 2"/>`,load:()=>Q(()=>import(`./Contest.js`),__vite__mapDeps([8,1,2,9]),import.meta.url)},"./encoder/page.ts":{name:`encoder`,order:11.7,views:[`sentences`],remedy:!0,included:{models:[`bert`],text:`The little dog began to [MASK] at the cat.`},icon:`<path d="M8 5H5v14h3M16 5h3v14h-3M9 12h6M11 9.5 8.5 12l2.5 2.5M13 9.5l2.5 2.5-2.5 2.5"/>`,load:()=>Q(()=>import(`./Encoder.js`),__vite__mapDeps([10,1,2,11]),import.meta.url)},"./gallery/page.ts":{name:`gallery`,order:11,views:[`attention`],icon:`<rect x="4" y="5" width="7" height="6" rx="1"/><rect x="14" y="5" width="6" height="10" rx="1"/><rect x="4" y="14" width="7" height="5" rx="1"/><path d="M14 19h6"/>`,load:()=>Q(()=>import(`./Gallery.js`),__vite__mapDeps([12,1,2,13,14]),import.meta.url)},"./generate/page.ts":{name:`generate`,order:7,views:[`writing`],icon:`<path d="M4 7h10M4 12h6"/><path d="M4 17h4"/><rect x="12" y="11" width="9" height="9" rx="2"/><path d="M15 14h.01M18 17h.01"/>`,load:()=>Q(()=>import(`./Generate.js`),__vite__mapDeps([15,1,2,16]),import.meta.url)},"./jobs/page.ts":{name:`jobs`,order:12,uncut:!0,icon:`<path d="M4 4v16h16"/><path d="M7 7c2 6 5 9 12 9.5"/>`,load:()=>Q(()=>import(`./Jobs.js`),__vite__mapDeps([17,1,2,18]),import.meta.url)},"./layers/page.ts":{name:`layers`,order:4,views:[`lens`],icon:`<path d="m12 3 9 5-9 5-9-5 9-5Z"/><path d="m3 13 9 5 9-5"/>`,load:()=>Q(()=>import(`./Layers.js`),__vite__mapDeps([19,1,2,20]),import.meta.url)},"./learn/page.ts":{name:`learn`,order:7.5,uncut:!0,icon:`<path d="M4 5v14h16"/><path d="M7 8c1 7 5 8 12 8.5"/><path d="m14 5 1.5 3L19 9l-3.5 1L14 13l-1.5-3L9 9l3.5-1Z"/>`,load:()=>Q(()=>import(`./Learn.js`),__vite__mapDeps([21,1,2,22]),import.meta.url)},"./map/page.ts":{name:`map`,order:8.5,views:[`sweep`,`change`],icon:`<path d="M4 4h16v16H4zM4 9.3h16M4 14.7h16M9.3 4v16M14.7 4v16"/><path d="M14.7 9.3h5.3v5.4h-5.3z" fill="currentColor"/>`,load:()=>Q(()=>import(`./CausalMap.js`),__vite__mapDeps([23,1,2,24]),import.meta.url)},"./neurons/page.ts":{name:`neurons`,order:6,views:[`neurons`],icon:`<circle cx="5" cy="7" r="2"/><circle cx="5" cy="17" r="2"/><circle cx="13" cy="12" r="3"/><path d="m7 8 3.5 2.5M7 16l3.5-2.5M16 12h5"/>`,load:()=>Q(()=>import(`./Neurons.js`),__vite__mapDeps([25,1,2,26]),import.meta.url)},"./piano/page.ts":{name:`piano`,order:11.5,uncut:!0,icon:`<rect x="4" y="5" width="16" height="14" rx="1.5"/><path d="M9.3 13v6M14.7 13v6"/><path d="M8 5v8h2.6V5M13.4 5v8H16V5" fill="currentColor" stroke-width="1"/>`,load:()=>Q(()=>import(`./Piano.js`),__vite__mapDeps([27,1,2,28,29]),import.meta.url)},"./predict/page.ts":{name:`predict`,order:1,views:[`predict`],icon:`<path d="M4 6h14M4 12h9M4 18h5"/>`,load:()=>Q(()=>import(`./Predict.js`),__vite__mapDeps([30,1,2,31]),import.meta.url)},"./senses/page.ts":{name:`senses`,order:6.5,views:[`senses`],icon:`<path d="M12 20V12M12 12 5 5M12 12l7-7"/><circle cx="12" cy="20" r="1.5"/><circle cx="5" cy="5" r="1.5"/><circle cx="19" cy="5" r="1.5"/>`,load:()=>Q(()=>import(`./Senses.js`),__vite__mapDeps([32,1,2,33]),import.meta.url)},"./tasks/page.ts":{name:`tasks`,order:10,uncut:!0,icon:`<path d="M4 6h9M4 11h7M4 16h5"/><path d="m13 17 3 3 5-7"/>`,load:()=>Q(()=>import(`./Tasks.js`),__vite__mapDeps([34,1,2,35]),import.meta.url)},"./translator/page.ts":{name:`translator`,order:9.5,icon:`<path d="M4 5v14M9 5v14M15 5v14M20 5v14" stroke-dasharray="3 2.5"/><path d="m9 8 6 8m0-8-6 8"/>`,load:()=>Q(()=>import(`./Translator.js`),__vite__mapDeps([36,1,2,37,28,38,39]),import.meta.url)},"./walk/page.ts":{name:`walk`,order:2,views:[`values`],icon:`<path d="M5 20v-4h5v-5h5V6h5"/><path d="m17 3 3 3-3 3"/>`,load:()=>Q(()=>import(`./Walk.js`),__vite__mapDeps([40,1,2,37,28,38,41]),import.meta.url)},"./weights/page.ts":{name:`weights`,order:9,icon:`<path d="M4 4h16v16H4z"/><path d="M4 9.3h16M4 14.6h16M9.3 4v16M14.6 4v16"/>`,load:()=>Q(()=>import(`./Weights2.js`),__vite__mapDeps([42,1,2,13,43]),import.meta.url)}})).filter(e=>Le(e.name)).sort((e,t)=>e.order-t.order);function pt(e,t){let[n=``,r=``]=t.split(`.`);return e[n]?.[r]}function mt(e){return e?e.as===`tokens`?e.value.map(e=>e.text??``).join(``).trim():e.as===`ids`||e.as===`text`?String(e.value):gt[e.as](e.value):``}function ht(e,t){return Object.entries(e.if??{}).every(([e,[n,r]])=>{let i=pt(t,e);return typeof i?.value==`number`&&i.value>=(n??-1/0)&&i.value<=(r??1/0)})}var gt={count:e=>be(e),percent:e=>Fe(e),number:e=>ke(e)};function _t(e,t,n){return e.split(/(\{\w+\.\w+[^}]*\})/).map(e=>{let[,r=``,i=``]=/^\{(\w+\.\w+)([^}]*)\}$/.exec(e)??[],a=r?pt(t,r):void 0;return!a||a.as===`ids`||a.as===`text`?e:a.as===`tokens`?{tokens:a.value}:{text:i?ue(`{n${i}}`,n,{n:a.value}):gt[a.as](a.value),value:a.value}})}var vt=Object.assign({"./01-next-word.json":`{
  "page": "predict",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She"
  },
  "facts": {
    "next": {
      "of": "next"
    }
  },
  "point": "bars",
  "title": {
    "en": "A machine that guesses the next word",
    "zh-Hans": "一台猜下一个词的机器",
    "ru": "Машина, которая угадывает следующее слово"
  },
  "words": {
    "en": "A language model does one thing: it reads a text and says how likely each token is to come next. The bars are its ten best guesses. Everything else on this tour is how it comes to them.",
    "zh-Hans": "语言模型只做一件事：读一段文本，说出每个词元作为下一个词元的可能性有多大。这些条形是它最好的十个猜测。这次导览的其余部分，就是看它怎样得出这些猜测。",
    "ru": "Языковая модель делает одно: читает текст и говорит, насколько вероятно, что следующим будет каждый из токенов. Полосы — десять её лучших догадок. Вся остальная экскурсия — о том, как они получаются."
  },
  "ask": {
    "question": {
      "en": "Before you look: which word will the model guess after {next.after}?",
      "zh-Hans": "先别看：您觉得模型会猜 {next.after} 后面是哪个词？",
      "ru": "Пока не подсмотрели: какое слово модель поставит после {next.after}?"
    },
    "answer": "next.token"
  },
  "here": [
    {
      "en": "Here {next.token} is likeliest after {next.after}: {next.share}.",
      "zh-Hans": "这里，{next.after} 之后最可能的是 {next.token}：{next.share}。",
      "ru": "Здесь после {next.after} вероятнее всего {next.token}: {next.share}."
    }
  ],
  "try": {
    "en": "Which word would you have guessed? Click a bar to continue with it.",
    "zh-Hans": "换作是您会猜哪个词？点一个条形，接着写下去。",
    "ru": "А какое слово угадали бы вы? Нажмите на полосу, чтобы продолжить."
  }
}
`,"./02-tokens.json":`{
  "page": "predict",
  "place": {
    "text": "Lily was unbelievably happy"
  },
  "facts": {
    "cut": {
      "of": "cut",
      "word": "unbelievably"
    }
  },
  "point": "text",
  "title": {
    "en": "It reads tokens",
    "zh-Hans": "它读的是词元",
    "ru": "Она читает токены"
  },
  "words": {
    "en": "The model does not see letters. The text is cut into tokens from a fixed list of {vocabulary}: common words are one token, rare ones fall into pieces. Each chip above is one; the dot is its space.",
    "zh-Hans": "模型看不到字母。文本按一张固定的表（共 {vocabulary} 项）切成词元：常见词是一个词元，少见的词会切成几段。上面每个小方块就是一个词元，圆点是其中的空格。",
    "ru": "Букв модель не видит. Текст режется на токены из постоянного списка (всего {vocabulary}): частые слова — один токен, редкие распадаются на части. Каждая плашка наверху — токен; точка — его пробел."
  },
  "here": [
    {
      "if": {
        "cut.pieces": [2, null]
      },
      "en": "Here {cut.words} words are {cut.tokens} tokens; “unbelievably” falls into {cut.pieces}: {cut.list}.",
      "zh-Hans": "这里 {cut.words} 个词是 {cut.tokens} 个词元；“unbelievably” 被切成了 {cut.pieces} 段：{cut.list}。",
      "ru": "Здесь {cut.words|# слово|# слова|# слов} — это {cut.tokens|# токен|# токена|# токенов}; «unbelievably» распалось на {cut.pieces|# часть|# части|# частей}: {cut.list}."
    },
    {
      "en": "Here {cut.words} words are {cut.tokens} tokens: even “unbelievably” is common enough to be one.",
      "zh-Hans": "这里 {cut.words} 个词是 {cut.tokens} 个词元：连 “unbelievably” 也足够常见，自成一个词元。",
      "ru": "Здесь {cut.words|# слово|# слова|# слов} — это {cut.tokens|# токен|# токена|# токенов}: даже «unbelievably» встречается достаточно часто, чтобы быть одним токеном."
    }
  ],
  "try": {
    "en": "Press “Write” and type a word you have made up. Into how many pieces does it fall?",
    "zh-Hans": "按“编辑”，写一个您自造的词。它被切成了几段？",
    "ru": "Нажмите «Писать» и наберите придуманное слово. На сколько частей оно распалось?"
  },
  "own": {
    "here": [
      {
        "en": "Here {cut.words|# word is|# words are} {cut.tokens|# token|# tokens}; the word in the most pieces falls into {cut.pieces}: {cut.list}.",
        "zh-Hans": "这里 {cut.words} 个词是 {cut.tokens} 个词元；碎得最多的词成了 {cut.pieces} 块：{cut.list}。",
        "ru": "Здесь {cut.words|# слово|# слова|# слов} и {cut.tokens|# токен|# токена|# токенов}; самое дробное слово распалось на {cut.pieces|# часть|# части|# частей}: {cut.list}."
      }
    ]
  }
}
`,"./03-one-at-a-time.json":`{
  "page": "predict",
  "place": {
    "text": "Once upon a time",
    "from": "ways"
  },
  "facts": {
    "ways": {
      "of": "branches"
    }
  },
  "point": "branches",
  "title": {
    "en": "One token at a time",
    "zh-Hans": "一次一个词元",
    "ru": "По одному токену"
  },
  "words": {
    "en": "A long answer is made of single steps. The model gives one token, that token joins the text, and the longer text is read for the next. The tree under the bars shows the branches that were tried.",
    "zh-Hans": "再长的回答也是一步一步写成的。模型给出一个词元，它加入文本，再读变长了的文本来得到下一个。条形下面的树记着试过的分支。",
    "ru": "Длинный ответ складывается из отдельных шагов. Модель даёт один токен, он дописывается к тексту, и удлинившийся текст читается снова. Дерево под полосами хранит испробованные ветви."
  },
  "here": [
    {
      "if": {
        "ways.share": [0.8, null]
      },
      "en": "Nearly all the probability, {ways.share}, was first on {ways.token}; the other branch begins with {ways.other}: {ways.other_share}.",
      "zh-Hans": "起初几乎全部概率（{ways.share}）都在 {ways.token} 上；另一条分支从 {ways.other}（{ways.other_share}）开始。",
      "ru": "Сначала почти вся вероятность, {ways.share}, была у {ways.token}; другая ветвь начинается с {ways.other}: {ways.other_share}."
    },
    {
      "en": "At first {ways.token} was likeliest, with {ways.share}; the other branch begins with {ways.other}: {ways.other_share}.",
      "zh-Hans": "起初最可能的是 {ways.token}（{ways.share}）；另一条分支从 {ways.other}（{ways.other_share}）开始。",
      "ru": "Сначала вероятнее всего было {ways.token}: {ways.share}; другая ветвь начинается с {ways.other}: {ways.other_share}."
    }
  ],
  "try": {
    "en": "Press 1 a few times to write on. Then click an earlier token of the tree and choose another branch.",
    "zh-Hans": "连按几次 1，接着写下去。再点树上靠前的词元，换一条分支。",
    "ru": "Нажмите 1 несколько раз, чтобы писать дальше. Потом нажмите на один из ранних токенов дерева и начните другую ветвь."
  }
}
`,"./04-stack.json":`{
  "page": "walk",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "step": "whole"
  },
  "facts": {
    "size": {
      "of": "size"
    }
  },
  "point": "picture",
  "title": {
    "en": "A stack of identical blocks",
    "zh-Hans": "一摞相同的块",
    "ru": "Стопка одинаковых блоков"
  },
  "words": {
    "en": "Every token travels up its own path through the blocks, one above the other; the last block’s result becomes the prediction. This model has {layers} blocks and is {width} numbers wide.",
    "zh-Hans": "每个词元沿着自己的路径，逐个块向上穿过整个模型；最后一个块的结果变成预测。这个模型有 {layers} 个块，宽 {width} 个数。",
    "ru": "Каждый токен поднимается своим путём через блоки, один над другим; из результата последнего получается прогноз. В этой модели {layers|# блок|# блока|# блоков} шириной в {width|# число|# числа|# чисел}."
  },
  "here": [
    {
      "if": {
        "size.blocks": [null, 11],
        "size.width": [null, 767]
      },
      "en": "GPT-2 is the same machine, wider and taller: its four sizes have 12, 24, 36 and 48 blocks.",
      "zh-Hans": "GPT-2 是同一台机器，只是更宽更高：四种规格分别有 12、24、36、48 个块。",
      "ru": "GPT-2 — та же машина, только шире и выше: в её четырёх размерах 12, 24, 36 и 48 блоков."
    },
    {
      "en": "GPT-2 comes in four sizes, of 12, 24, 36 and 48 blocks.",
      "zh-Hans": "GPT-2 有四种规格，分别有 12、24、36、48 个块。",
      "ru": "GPT-2 бывает четырёх размеров: 12, 24, 36 и 48 блоков."
    }
  ],
  "try": {
    "en": "Choose another token above: its path is the same, its numbers differ.",
    "zh-Hans": "在上方选另一个词元：路径相同，数值不同。",
    "ru": "Выберите наверху другой токен: путь тот же, числа другие."
  }
}
`,"./05-embedding.json":`{
  "page": "walk",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "step": "embedding",
    "from": "girl"
  },
  "facts": {
    "girl": {
      "of": "alike",
      "at": "girl"
    }
  },
  "point": "picture",
  "title": {
    "en": "A word becomes numbers",
    "zh-Hans": "词变成数",
    "ru": "Слово становится числами"
  },
  "words": {
    "en": "The model can only calculate. So each token of the vocabulary has a row of {width} numbers in a big matrix, and the first step is to look up that row. Nobody chose these numbers: they were learned.",
    "zh-Hans": "模型只会计算。所以词表里的每个词元在一个大矩阵里有一行，共 {width} 个数；第一步就是查出这一行。这些数不是谁挑的，而是学到的。",
    "ru": "Модель умеет только считать. Поэтому у каждого токена словаря есть своя строка большой матрицы: {width|# число|# числа|# чисел}. Первый шаг — найти эту строку. Числа никто не выбирал: они выучены."
  },
  "here": [
    {
      "if": {
        "girl.nearest": [0.4, null]
      },
      "en": "Tokens that are used alike have similar rows: nearest to the row of {girl.token} are those of {girl.list}.",
      "zh-Hans": "用法相近的词元，行也相近：离 {girl.token} 的行最近的是 {girl.list}。",
      "ru": "У токенов с похожим употреблением строки похожи: ближе всего к строке {girl.token} строки {girl.list}."
    },
    {
      "en": "The rows nearest to that of {girl.token} are those of {girl.list}.",
      "zh-Hans": "离 {girl.token} 的行最近的是 {girl.list}。",
      "ru": "Ближе всего к строке {girl.token} строки {girl.list}."
    }
  ],
  "try": {
    "en": "Choose another token above: another row is looked up. Point at a cell to see its number.",
    "zh-Hans": "在上方选另一个词元：读出的就是另一行。指向一格，看它的数。",
    "ru": "Выберите наверху другой токен: прочтётся другая строка. Укажите на клетку, чтобы увидеть число."
  }
}
`,"./06-position.json":`{
  "page": "walk",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "step": "position",
    "from": "girl"
  },
  "facts": {
    "girl": {
      "of": "place",
      "at": "girl"
    }
  },
  "point": "picture",
  "title": {
    "en": "A position becomes numbers, too",
    "zh-Hans": "位置也变成数",
    "ru": "Позиция тоже становится числами"
  },
  "words": {
    "en": "“Dog bites man” and “man bites dog” have the same words. To know the order, the model has a second matrix with one row for each of its {context} positions, and looks up the row of this position.",
    "zh-Hans": "“狗咬人”和“人咬狗”用的是同样的词。为了知道顺序，模型还有第二个矩阵，{context} 个位置各占一行；它查出当前位置的那一行。",
    "ru": "В «собака кусает человека» и «человек кусает собаку» почти одни и те же слова. Чтобы знать порядок, у модели есть вторая матрица, в ней {context|# строка|# строки|# строк}, по одной на каждую позицию; из неё берётся строка этой позиции."
  },
  "try": {
    "en": "Click a token above, then step along the text with the left and right arrow keys: the row changes with the position.",
    "zh-Hans": "点一下上方的某个词元，再用左右方向键沿文本移动：行随位置而变。",
    "ru": "Нажмите на токен наверху и идите по тексту стрелками влево и вправо: строка меняется вместе с позицией."
  }
}
`,"./07-entry.json":`{
  "page": "walk",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "step": "entry",
    "from": "girl"
  },
  "facts": {
    "girl": {
      "of": "place",
      "at": "girl"
    }
  },
  "point": "picture",
  "title": {
    "en": "Into the first block",
    "zh-Hans": "进入第一个块",
    "ru": "В первый блок"
  },
  "words": {
    "en": "The two rows are added, number by number. The sum says “this token, at this position”, and it is all that the first block gets. From here on it is called the residual stream: what the blocks read from and write to.",
    "zh-Hans": "两行逐个数相加。和的意思是“这个词元，在这个位置”，第一个块得到的就只有它。从这里起它叫残差流：各块从中读取，也往里写入。",
    "ru": "Две строки складываются, число за числом. Сумма говорит: «этот токен в этой позиции», и больше первый блок ничего не получает. Дальше она называется остаточным потоком: из него блоки читают и в него пишут."
  },
  "try": {
    "en": "Point at a cell of the sum: the panel shows the two numbers it was made of.",
    "zh-Hans": "指向和里的一格：面板会显示它由哪两个数相加而来。",
    "ru": "Укажите на клетку суммы: панель покажет два числа, из которых она сложена."
  }
}
`,"./08-why-attention.json":`{
  "page": "attention",
  "place": {
    "text": "A robot must obey the orders given it by human beings",
    "from": "look",
    "settings": {
      "view": "lines"
    }
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "it",
      "end": "robot"
    }
  },
  "point": "head",
  "title": {
    "en": "Who is “it”?",
    "zh-Hans": "“it” 是谁？",
    "ru": "Кто такой «it»?"
  },
  "words": {
    "en": "By the second law of robotics a robot must obey the orders given it. Given whom? To know who “it” is, a model must look back to the robot. This is what attention is for: each token takes something from the tokens before it, and the lines show from which, and how much.",
    "zh-Hans": "机器人第二定律：机器人必须服从给它的命令。“它” 是谁？要知道 “it” 指谁，模型得往回看到 robot。这正是注意力的用处：每个词元从前面的词元那里取一些东西；线条显示从哪里取、取多少。",
    "ru": "Второй закон робототехники: робот должен повиноваться приказам, данным ему. Кому? Чтобы понять «it», модели нужно посмотреть назад, на робота. Для этого и есть внимание: каждый токен берёт что-то у предыдущих; линии показывают, у каких и сколько."
  },
  "ask": {
    "question": {
      "en": "Will some head look back from {look.from} to {look.to}?",
      "zh-Hans": "会不会有哪个头从 {look.from} 往回看 {look.to}？",
      "ru": "Найдётся ли голова, которая смотрит с {look.from} назад на {look.to}?"
    },
    "options": [
      {
        "if": {
          "look.weight": [0.2, null]
        },
        "en": "Yes, clearly",
        "zh-Hans": "会，很明显",
        "ru": "Да, явно"
      },
      {
        "if": {
          "look.weight": [0.05, null]
        },
        "en": "A little",
        "zh-Hans": "会一点点",
        "ru": "Немного"
      },
      {
        "en": "No",
        "zh-Hans": "不会",
        "ru": "Нет"
      }
    ]
  },
  "here": [
    {
      "if": {
        "look.weight": [0.2, null],
        "look.is_most": [1, 1]
      },
      "en": "Head {look.head} of layer {look.layer} does it: there {look.from} takes {look.weight} from {look.to}, more than from any other token.",
      "zh-Hans": "第 {look.layer} 层的头 {look.head} 正是这样：{look.from} 从 {look.to} 取得 {look.weight}，比从任何别的词元都多。",
      "ru": "Это делает голова {look.head} слоя {look.layer}: в ней {look.from} берёт у {look.to} {look.weight}, больше, чем у любого другого токена."
    },
    {
      "if": {
        "look.weight": [0.05, null]
      },
      "en": "Head {look.head} of layer {look.layer} does most of it: there {look.from} takes {look.weight} from {look.to}.",
      "zh-Hans": "做得最多的是第 {look.layer} 层的头 {look.head}：{look.from} 从 {look.to} 取得 {look.weight}。",
      "ru": "Больше всех это делает голова {look.head} слоя {look.layer}: в ней {look.from} берёт у {look.to} {look.weight}."
    },
    {
      "en": "In this model no head does it clearly: in the one shown, {look.from} looks at {look.to} more than in any other, with a weight of {look.weight}.",
      "zh-Hans": "在这个模型里没有哪个头明显这样做：图中的头里 {look.from} 看 {look.to} 最多，权重也只有 {look.weight}。",
      "ru": "В этой модели ни одна голова не делает этого явно: в показанной {look.from} смотрит на {look.to} сильнее, чем в остальных, с весом {look.weight}."
    }
  ],
  "try": {
    "en": "Point at “orders” and at “obey”. What do they look at in this head, and in the others?",
    "zh-Hans": "指向 “orders” 和 “obey”。在这个头里它们看哪里？在别的头里呢？",
    "ru": "Укажите на «orders» и на «obey». Куда они смотрят в этой голове и куда в других?"
  },
  "own": {
    "words": {
      "en": "To go on with a text, a model must know what came before: who it is about, what was said of it. This is what attention is for: each token takes something from the tokens before it, and the lines show from which, and how much.",
      "zh-Hans": "要把一段文本接着写下去，模型得知道前面说了什么：说的是谁，怎么样。这正是注意力的用处：每个词元从前面的词元那里取一些东西；线条显示从哪里取、取多少。",
      "ru": "Чтобы продолжить текст, модели нужно знать, что было раньше: о ком речь и что о нём сказано. Для этого и есть внимание: каждый токен берёт что-то у предыдущих; линии показывают, у каких и сколько."
    },
    "try": {
      "en": "Point at other tokens of your text. What do they look at in this head, and in the others?",
      "zh-Hans": "指向您文本中的其他词元。在这个头里它们看哪里？在别的头里呢？",
      "ru": "Укажите на другие токены своего текста. Куда они смотрят в этой голове и куда в других?"
    }
  }
}
`,"./09-query-key-value.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "made",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "his",
      "end": "ball"
    }
  },
  "point": "picture",
  "title": {
    "en": "Three vectors: query, key, value",
    "zh-Hans": "三个向量：查询、键、值",
    "ru": "Три вектора: запрос, ключ, значение"
  },
  "words": {
    "en": "Think of a filing cabinet. The query is the note that says what this token looks for, the keys are the labels on the folders, the values are what is inside. One learned matrix makes all three from the token’s vector.",
    "zh-Hans": "想象一柜文件夹。查询是便签，写着这个词元在找什么；键是文件夹上的标签；值是里面的内容。一个学到的矩阵，从词元的向量一次算出这三者。",
    "ru": "Представьте шкаф с папками. Запрос — записка о том, что ищет этот токен, ключи — надписи на папках, значения — то, что внутри. Все три создаёт из вектора токена одна выученная матрица."
  },
  "try": {
    "en": "Change the layer below: each block has its own matrix, so the same token asks for something else.",
    "zh-Hans": "在下方换一层：每个块有自己的矩阵，同一个词元就会找别的东西。",
    "ru": "Смените слой внизу: у каждого блока своя матрица, и тот же токен ищет другое."
  }
}
`,"./10-scores.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "scores",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "his",
      "end": "ball"
    }
  },
  "point": "picture",
  "title": {
    "en": "How well do they fit?",
    "zh-Hans": "有多吻合？",
    "ru": "Насколько подходят?"
  },
  "words": {
    "en": "The query is multiplied by each key, number by number, and the products are summed up: one score for each token so far. A high score means that this key is what the query looks for. Dividing by the square root of {head_width} keeps the scores from growing with the width.",
    "zh-Hans": "查询与每个键逐个数相乘再求和：到这里为止的每个词元得到一个得分。得分高，说明这个键正是查询要找的。再除以 {head_width} 的平方根，得分就不会随宽度变大。",
    "ru": "Запрос умножается на каждый ключ, число на число, и произведения складываются: по одной оценке на каждый токен до этой позиции. Высокая значит, что этот ключ — то, что ищет запрос. Деление на квадратный корень из {head_width} не даёт оценкам расти с шириной."
  },
  "here": [
    {
      "en": "The highest score here, {look.score}, belongs to {look.most}.",
      "zh-Hans": "这里得分最高的是 {look.most}：{look.score}。",
      "ru": "Самая высокая оценка здесь, {look.score}, у {look.most}."
    }
  ],
  "try": {
    "en": "Point at a score to see the multiplication with its real numbers.",
    "zh-Hans": "指向一个得分，看用真实的数做的乘法。",
    "ru": "Укажите на оценку, чтобы увидеть умножение с настоящими числами."
  }
}
`,"./11-mask.json":`{
  "page": "attention",
  "place": {
    "text": " robot must obey orders",
    "from": "look",
    "settings": {
      "stage": "masked"
    }
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "orders",
      "end": "robot"
    }
  },
  "point": "head",
  "title": {
    "en": "No looking into the future",
    "zh-Hans": "不许看未来",
    "ru": "В будущее смотреть нельзя"
  },
  "words": {
    "en": "All tokens of a text are computed together, so each query meets every key, even those of words that come later. To guess the next word honestly, those scores are struck out: the upper triangle is empty. The first token can only look at itself.",
    "zh-Hans": "一段文本的所有词元是一起计算的，所以每个查询会遇到每个键，连后面的词也在内。要老老实实地猜下一个词，这些得分就得划掉：右上三角是空的。第一个词元只能看自己。",
    "ru": "Все токены текста вычисляются вместе, и каждый запрос встречает каждый ключ, даже ключи слов, которые стоят дальше. Чтобы угадывать честно, эти оценки вычёркивают: верхний треугольник пуст. Первый токен может смотреть только на себя."
  },
  "here": [
    {
      "en": "Here {look.tokens} tokens make a table of {look.tokens} × {look.tokens}.",
      "zh-Hans": "这里 {look.tokens} 个词元组成 {look.tokens} × {look.tokens} 的表。",
      "ru": "Здесь {look.tokens|# токен|# токена|# токенов}, и таблица — {look.tokens} × {look.tokens}."
    }
  ],
  "try": {
    "en": "Switch from “masked” to “scores” and see what was struck out.",
    "zh-Hans": "从“掩码后”切换到“得分”，看看划掉的是什么。",
    "ru": "Переключите «с маской» на «оценки» и посмотрите, что было вычеркнуто."
  }
}
`,"./12-softmax.json":`{
  "page": "attention",
  "place": {
    "text": " robot must obey orders",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "orders",
      "end": "robot"
    }
  },
  "point": "head",
  "title": {
    "en": "From scores to shares",
    "zh-Hans": "从得分到份额",
    "ru": "От оценок к долям"
  },
  "words": {
    "en": "Softmax turns each row into shares that add up to 100%. A score higher by one gets a share 2.7 times as large; what was struck out gets nothing. This table is the famous picture of attention.",
    "zh-Hans": "softmax 把每一行变成份额，相加为 100%。得分高 1，份额就是 2.7 倍；划掉的一点也得不到。这张表就是那幅有名的注意力图。",
    "ru": "Softmax превращает каждую строку в доли, в сумме 100\xA0%. Оценка выше на единицу — доля в 2,7 раза больше; вычеркнутое не получает ничего. Эта таблица и есть знаменитая картина внимания."
  },
  "here": [
    {
      "en": "Here the last row, that of {look.from}, gives most to {look.most}: {look.share}.",
      "zh-Hans": "这里最后一行（{look.from} 的那行）把最多的份额给了 {look.most}：{look.share}。",
      "ru": "Здесь последняя строка, у {look.from}, отдаёт больше всего {look.most}: {look.share}."
    }
  ],
  "try": {
    "en": "Click another row: which tokens share its attention?",
    "zh-Hans": "点另一行：哪些词元分到了它的注意力？",
    "ru": "Нажмите на другую строку: каким токенам достаётся её внимание?"
  }
}
`,"./13-mix.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "mix",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "his",
      "end": "ball"
    }
  },
  "point": "picture",
  "title": {
    "en": "A mixture of values",
    "zh-Hans": "值的混合",
    "ru": "Смесь значений"
  },
  "words": {
    "en": "Now the values come in: each is multiplied by its share, and all are added. If one token has nearly all the weight, the result is nearly that token’s value. This is what the head brings back from looking at the text.",
    "zh-Hans": "现在轮到值：每个值乘以自己的份额，再全部相加。若某个词元几乎占了全部权重，结果就几乎是它的值。这就是这个头看过文本之后带回来的东西。",
    "ru": "Теперь нужны значения: каждое умножается на свою долю, и всё складывается. Если почти весь вес у одного токена, получится почти его значение. Это то, что голова приносит, осмотрев текст."
  },
  "here": [
    {
      "if": {
        "look.share": [0.5001, null]
      },
      "en": "Here {look.most} has {look.share} of the weight, more than all the others together.",
      "zh-Hans": "这里 {look.most} 占了 {look.share} 的权重，比其余的加起来还多。",
      "ru": "Здесь у {look.most} {look.share} веса, больше, чем у всех остальных, вместе взятых."
    },
    {
      "en": "Here the largest share, {look.share}, is that of {look.most}; the rest comes from many.",
      "zh-Hans": "这里最大的份额是 {look.most} 的 {look.share}；其余来自许多词元。",
      "ru": "Здесь самая большая доля, {look.share}, у {look.most}; остальное — от многих."
    }
  ],
  "try": {
    "en": "Choose another head below. Does it bring back the same?",
    "zh-Hans": "在下方换一个头。它带回的一样吗？",
    "ru": "Выберите внизу другую голову. Приносит ли она то же?"
  }
}
`,"./14-heads.json":`{
  "page": "attention",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "his",
      "end": "ball"
    },
    "kinds": {
      "of": "kinds"
    }
  },
  "point": "glance",
  "title": {
    "en": "Many heads, many ways to look",
    "zh-Hans": "许多头，许多种看法",
    "ru": "Много голов — много взглядов"
  },
  "words": {
    "en": "A block does not look just once. Its long vectors are cut into {heads} pieces, and each piece is a head that looks in its own way: at the token before, at the first one, at a matching word, or at many at once.",
    "zh-Hans": "一个块并不只看一次。长向量切成 {heads} 段，每段是一个头，各有各的看法：看前一个词元，看第一个，看相配的词，或同时看许多。",
    "ru": "Блок смотрит не один раз. Его длинные векторы разделены на {heads|# часть|# части|# частей}, и каждая из них — голова, которая смотрит по-своему: на предыдущий токен, на первый, на подходящее слово или сразу на многие."
  },
  "here": [
    {
      "en": "Of the {kinds.heads} heads of this model, head {kinds.previous_head} of layer {kinds.previous_layer} looks most at the token before ({kinds.previous}), head {kinds.first_head} of layer {kinds.first_layer} at the first ({kinds.first}).",
      "zh-Hans": "这个模型的 {kinds.heads} 个头里，最常看前一个词元的是第 {kinds.previous_layer} 层的头 {kinds.previous_head}（{kinds.previous}），最常看第一个词元的是第 {kinds.first_layer} 层的头 {kinds.first_head}（{kinds.first}）。",
      "ru": "В этой модели {kinds.heads|# голова|# головы|# голов}: на предыдущий токен больше всех смотрит голова {kinds.previous_head} слоя {kinds.previous_layer} ({kinds.previous}), на первый — голова {kinds.first_head} слоя {kinds.first_layer} ({kinds.first})."
    }
  ],
  "try": {
    "en": "Click the two heads named here, then sort all of them by kind.",
    "zh-Hans": "点开这里说到的两个头，再把所有的头按类型排列。",
    "ru": "Нажмите на обе названные головы, потом упорядочите все по виду."
  }
}
`,"./15-copying.json":`{
  "page": "attention",
  "place": {
    "text": "Names: Sam Tom Anna Lily Max Sam Tom",
    "from": "look",
    "settings": {
      "view": "lines"
    }
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "",
      "end": "Anna"
    },
    "next": {
      "of": "next",
      "word": "Anna"
    }
  },
  "point": "head",
  "title": {
    "en": "A head that copies",
    "zh-Hans": "会抄写的头",
    "ru": "Голова, которая переписывает"
  },
  "words": {
    "en": "A row of names begins again. To go on, a model needs two heads that work together: one marks each token with the token before it, another finds the place where the same name stood before and looks at what came after it there. It is called an induction head.",
    "zh-Hans": "一串名字又从头开始。要接下去，需要两个头配合：一个给每个词元记下它前面是谁，另一个找到同一个名字上次出现的地方，看那里后面是什么。后者叫归纳头。",
    "ru": "Ряд имён начинается снова. Чтобы продолжить, нужны две головы: одна помечает каждый токен тем, что стоял перед ним, другая находит, где то же имя было раньше, и смотрит, что шло за ним. Её называют индукционной."
  },
  "here": [
    {
      "if": {
        "next.right": [1, 1],
        "look.weight": [0.2, null]
      },
      "en": "Head {look.head} of layer {look.layer} looks from {look.from} to {look.to}, which came after it the first time, with {look.weight}. The model says {next.token} ({next.share}).",
      "zh-Hans": "第 {look.layer} 层的头 {look.head} 从 {look.from} 看向上次跟在它后面的 {look.to}，权重 {look.weight}。模型的回答是 {next.token}（{next.share}）。",
      "ru": "Голова {look.head} слоя {look.layer} смотрит с {look.from} на {look.to}, который шёл за ним в первый раз, с весом {look.weight}. Модель говорит {next.token} ({next.share})."
    },
    {
      "en": "In this model the head shown looks from {look.from} to {look.to} most, with {look.weight}. The model says {next.token} ({next.share}).",
      "zh-Hans": "在这个模型里，图中的头从 {look.from} 看 {look.to} 最多，权重 {look.weight}。模型的回答是 {next.token}（{next.share}）。",
      "ru": "В этой модели с {look.from} на {look.to} больше всех смотрит показанная голова: {look.weight}. Модель говорит {next.token} ({next.share})."
    }
  ],
  "try": {
    "en": "Write other names, or nonsense, twice. Does the same head find them?",
    "zh-Hans": "换别的名字，或没有意义的词，写两遍。还是这个头找到它们吗？",
    "ru": "Напишите дважды другие имена или бессмыслицу. Найдёт ли их та же голова?"
  },
  "own": false
}
`,"./16-projection.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "projection",
    "from": "look"
  },
  "facts": {
    "look": {
      "of": "looking",
      "start": "his",
      "end": "ball"
    }
  },
  "point": "picture",
  "title": {
    "en": "Back together",
    "zh-Hans": "重新合在一起",
    "ru": "Снова вместе"
  },
  "words": {
    "en": "The results of all heads are laid end to end. A second learned matrix mixes them into one vector that the rest of the machine can use. That is the whole of attention.",
    "zh-Hans": "所有头的结果首尾相接，再由第二个学到的矩阵混合成一个向量，供后面使用。注意力到这里就完整了。",
    "ru": "Результаты всех голов укладываются друг за другом. Вторая выученная матрица смешивает их в один вектор, понятный остальной машине. Вот и всё внимание."
  },
  "try": {
    "en": "Point at a number of the result: every head contributed to it.",
    "zh-Hans": "指向结果里的一个数：每个头都出了一份力。",
    "ru": "Укажите на число результата: в нём есть доля каждой головы."
  }
}
`,"./17-widen.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "widen",
    "from": "first"
  },
  "facts": {
    "first": {
      "of": "neurons",
      "layer": 4
    }
  },
  "point": "picture",
  "title": {
    "en": "Thinking it over: the first layer",
    "zh-Hans": "自己想一想：第一层",
    "ru": "Обдумать: первый слой"
  },
  "words": {
    "en": "After looking around, each token is processed by itself, in a small network of two layers. The first has {mlp_width} neurons. Each asks the vector one question: a weighted sum, positive for yes, negative for no.",
    "zh-Hans": "看过四周之后，每个词元在一个两层的小网络里单独处理。第一层有 {mlp_width} 个神经元，每个对向量提一个问题：一个加权和，正为“是”，负为“否”。",
    "ru": "Осмотревшись, каждый токен обрабатывается сам по себе в маленькой сети из двух слоёв. В первом {mlp_width|# нейрон|# нейрона|# нейронов}. Каждый задаёт вектору один вопрос: взвешенная сумма, плюс — «да», минус — «нет»."
  },
  "ask": {
    "question": {
      "en": "How many of the sums will be negative, in percent?",
      "zh-Hans": "有百分之几的和会是负数？",
      "ru": "Сколько процентов сумм окажутся отрицательными?"
    },
    "answer": "first.negative"
  },
  "here": [
    {
      "if": {
        "first.negative": [0.5001, null],
        "first.lowest_after": [-0.2, null]
      },
      "en": "Here {first.negative} of the sums are negative: most neurons answer no. The next step, GELU, brings those close to zero, and only the others fire.",
      "zh-Hans": "这里 {first.negative} 的和是负的：多数神经元回答“否”。下一步 GELU 把它们压到零附近，只有其余的才激活。",
      "ru": "Здесь отрицательны {first.negative} сумм: большинство нейронов отвечает «нет». Следующий шаг, GELU, сводит их почти к нулю, и срабатывают только остальные."
    },
    {
      "en": "Here {first.negative} of the sums are negative; GELU, the next step, lets the positive ones through.",
      "zh-Hans": "这里 {first.negative} 的和是负的；下一步 GELU 放正的通过。",
      "ru": "Здесь отрицательны {first.negative} сумм; следующий шаг, GELU, пропускает положительные."
    }
  ],
  "try": {
    "en": "Go one step on: how many neurons fire?",
    "zh-Hans": "再走一步：有多少神经元激活？",
    "ru": "Шаг вперёд: сколько нейронов сработало?"
  }
}
`,"./18-narrow.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "narrow",
    "from": "first"
  },
  "facts": {
    "first": {
      "of": "neurons",
      "layer": 4
    },
    "size": {
      "of": "size"
    }
  },
  "point": "picture",
  "title": {
    "en": "And the second",
    "zh-Hans": "第二层",
    "ru": "И второй слой"
  },
  "words": {
    "en": "Each neuron that fired writes its own vector, as strongly as it fired, and the second layer adds them up to {width} numbers again. Much of what a model knows about the world is thought to sit here.",
    "zh-Hans": "每个激活的神经元写入自己的向量，激活多强就写多强；第二层把它们加起来，又变回 {width} 个数。一般认为，模型对世界的了解有很大一部分就在这里。",
    "ru": "Каждый сработавший нейрон записывает свой вектор тем сильнее, чем сильнее сработал, и второй слой складывает их снова в {width|# число|# числа|# чисел}. Считается, что многое из того, что модель знает о мире, лежит здесь."
  },
  "here": [
    {
      "en": "The two layers hold {size.mlp} of the weights of a block.",
      "zh-Hans": "这两层占一个块全部权重的 {size.mlp}。",
      "ru": "На эти два слоя приходится {size.mlp} весов блока."
    }
  ],
  "try": {
    "en": "Point at a number to see which neurons made it.",
    "zh-Hans": "指向一个数，看它由哪些神经元产生。",
    "ru": "Укажите на число: какие нейроны его создали?"
  }
}
`,"./19-residual.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "mlp_residual",
    "from": "added"
  },
  "facts": {
    "added": {
      "of": "added",
      "layer": 4
    }
  },
  "point": "picture",
  "title": {
    "en": "Add, never replace",
    "zh-Hans": "只添加，不替换",
    "ru": "Добавить, а не заменить"
  },
  "words": {
    "en": "What attention and the network found is added to the stream; the old vector is not thrown away. So a block only has to say what should change, and what the first block found can still be read by the last.",
    "zh-Hans": "注意力和网络的发现是加到残差流里的，旧的向量没有丢掉。所以每个块只需说出该改什么；第一个块得到的东西，最后一个块仍能读到。",
    "ru": "То, что нашли внимание и сеть, прибавляется к потоку; прежний вектор не выбрасывается. Поэтому блоку достаточно сказать, что изменить, а найденное первым блоком прочтёт и последний."
  },
  "here": [
    {
      "en": "By length, the vector added here is {added.share} of the one it is added to.",
      "zh-Hans": "按长度算，这里加上去的向量是原有向量的 {added.share}。",
      "ru": "Если сравнить длины, прибавленное здесь составляет {added.share} того, к чему прибавлено."
    }
  ],
  "try": {
    "en": "Compare the three strips. Does another block change more?",
    "zh-Hans": "比较这三条向量。别的块改得更多吗？",
    "ru": "Сравните три полоски. Меняет ли другой блок больше?"
  }
}
`,"./20-norm.json":`{
  "page": "walk",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "step": "attention_norm",
    "from": "added"
  },
  "facts": {
    "added": {
      "of": "added",
      "layer": 4
    }
  },
  "point": "picture",
  "title": {
    "en": "Kept in bounds",
    "zh-Hans": "不让数值失控",
    "ru": "В разумных пределах"
  },
  "words": {
    "en": "As everything is added, the numbers could grow without limit. So before each part of a block the vector is standardized: its mean is subtracted and it is divided by its standard deviation. Then each number is multiplied by a learned gain, and a learned bias is added.",
    "zh-Hans": "样样都往上加，数可能无止境地变大。所以在块的每个部分之前先把向量标准化：减去均值，再除以标准差。然后每个数乘上各自学到的增益，加上学到的偏置。",
    "ru": "Раз всё прибавляется, числа могли бы расти без конца. Поэтому перед каждой частью блока вектор стандартизуют: вычитают среднее и делят на стандартное отклонение. Затем каждое число умножается на выученный множитель, и прибавляется выученное смещение."
  },
  "here": [
    {
      "if": {
        "added.growth": [1.2, null]
      },
      "en": "At this token the stream grows from {added.first} long, before the first block, to {added.last}, before the last. Standardized it is always {added.root} long, the square root of {width}.",
      "zh-Hans": "在这个词元上，残差流的长度从第一个块之前的 {added.first} 长到最后一个块之前的 {added.last}。标准化之后总是 {added.root}，即 {width} 的平方根。",
      "ru": "У этого токена длина потока растёт с {added.first} перед первым блоком до {added.last} перед последним. Стандартизованный, он всегда длиной {added.root}: квадратный корень из {width}."
    },
    {
      "en": "At this token the stream is {added.first} long before the first block and {added.last} before the last. Standardized it is always {added.root} long, the square root of {width}.",
      "zh-Hans": "在这个词元上，残差流的长度在第一个块之前是 {added.first}，在最后一个块之前是 {added.last}。标准化之后总是 {added.root}，即 {width} 的平方根。",
      "ru": "У этого токена длина потока перед первым блоком {added.first}, перед последним {added.last}. Стандартизованный, он всегда длиной {added.root}: квадратный корень из {width}."
    }
  ],
  "try": {
    "en": "Go up the layers and compare the first strip with the second.",
    "zh-Hans": "逐层往上，比较第一条向量和第二条向量。",
    "ru": "Поднимитесь по слоям и сравните первую полоску со второй."
  }
}
`,"./21-up-the-stack.json":`{
  "page": "layers",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She"
  },
  "facts": {
    "layers": {
      "of": "layers"
    }
  },
  "point": "picture",
  "title": {
    "en": "Up the stack",
    "zh-Hans": "一层一层向上",
    "ru": "Вверх по стопке"
  },
  "words": {
    "en": "The next block does the same with its own weights, and the next. Here you see what the model would say if it stopped after each layer. The top row is its real answer.",
    "zh-Hans": "下一个块用自己的权重做同样的事，再下一个也是。这里可以看到，若在某层之后停下，模型会说什么。最上面一行是它真正的回答。",
    "ru": "Следующий блок делает то же со своими весами, и следующий тоже. Здесь видно, что сказала бы модель, остановись она после каждого слоя. Верхняя строка — её настоящий ответ."
  },
  "here": [
    {
      "if": {
        "layers.repeated": [0.5, null],
        "layers.settled": [0, null]
      },
      "en": "Here the bottom row only repeats its input, at {layers.repeats} of {layers.tokens} positions. The answer after the last token, {layers.token}, comes first from layer {layers.settled} on.",
      "zh-Hans": "这里最下面一行只是重复输入：{layers.tokens} 个位置中有 {layers.repeats} 个如此。最后一个词元之后的回答 {layers.token}，从第 {layers.settled} 层起排在第一。",
      "ru": "Здесь нижняя строка лишь повторяет вход: в {layers.repeats|# позиции|# позициях|# позициях} из {layers.tokens}. Ответ после последнего токена, {layers.token}, стоит первым начиная со слоя {layers.settled}."
    },
    {
      "if": {
        "layers.settled": [0, null]
      },
      "en": "Here the bottom row agrees with the top at {layers.agrees} of {layers.tokens} positions. The answer after the last token, {layers.token}, comes first from layer {layers.settled} on.",
      "zh-Hans": "这里最下面一行与最上面一行在 {layers.tokens} 个位置中有 {layers.agrees} 个相同。最后一个词元之后的回答 {layers.token}，从第 {layers.settled} 层起排在第一。",
      "ru": "Здесь нижняя строка совпадает с верхней в {layers.agrees|# позиции|# позициях|# позициях} из {layers.tokens}. Ответ после последнего токена, {layers.token}, стоит первым начиная со слоя {layers.settled}."
    },
    {
      "en": "Here the bottom row agrees with the top at {layers.agrees} of {layers.tokens} positions.",
      "zh-Hans": "这里最下面一行与最上面一行在 {layers.tokens} 个位置中有 {layers.agrees} 个相同。",
      "ru": "Здесь нижняя строка совпадает с верхней в {layers.agrees|# позиции|# позициях|# позициях} из {layers.tokens}."
    }
  ],
  "try": {
    "en": "In other columns, where does the token of the top row come first?",
    "zh-Hans": "看别的列：最上面一行的词元在哪一层升到第一？",
    "ru": "А в других столбцах: где токен верхней строки выходит на первое место?"
  }
}
`,"./22-agreement.json":`{
  "page": "layers",
  "place": {
    "text": "The keys to the cabinet",
    "settings": {
      "watch_a": "are",
      "watch_b": "is"
    }
  },
  "facts": {
    "race": {
      "of": "race",
      "one": "are",
      "other": "is"
    }
  },
  "point": "watch",
  "title": {
    "en": "The keys to the cabinet",
    "zh-Hans": "柜子的钥匙们",
    "ru": "Ключи от шкафа"
  },
  "words": {
    "en": "Is it “are” or “is”? The nearest noun is one cabinet, but the verb belongs to the keys, three words further back. A model that only looked at the word before would be wrong. Here the two verbs are watched, layer by layer.",
    "zh-Hans": "该用 “are” 还是 “is”？最近的名词 cabinet 是单数，可动词属于更前面的 keys。只看前一个词的模型会弄错。这里逐层比较这两个动词。",
    "ru": "«Are» или «is»? Ближайшее существительное в единственном числе, но глагол относится к «keys», а они на три слова раньше. Модель, которая смотрит только на соседа, ошиблась бы. Здесь за двумя глаголами следят слой за слоем."
  },
  "here": [
    {
      "if": {
        "race.first_wins": [1, 1]
      },
      "en": "The model gets it right: in the end {race.winner} has rank {race.rank}, {race.loser} rank {race.beaten}.",
      "zh-Hans": "模型答对了：最后 {race.winner} 排第 {race.rank}，{race.loser} 排第 {race.beaten}。",
      "ru": "Модель права: в конце {race.winner} на месте {race.rank}, {race.loser} — на месте {race.beaten}."
    },
    {
      "en": "This model falls for the nearest noun: in the end {race.winner} has rank {race.rank}, {race.loser} rank {race.beaten}.",
      "zh-Hans": "这个模型被最近的名词骗了：最后 {race.winner} 排第 {race.rank}，{race.loser} 排第 {race.beaten}。",
      "ru": "Эту модель сбил сосед: в конце {race.winner} на месте {race.rank}, {race.loser} — на месте {race.beaten}."
    }
  ],
  "try": {
    "en": "Turn it around: “The key to the cabinets”. Then put more words between.",
    "zh-Hans": "反过来试试：“The key to the cabinets”。再在中间多加几个词。",
    "ru": "Переверните: «The key to the cabinets». Потом вставьте между ними больше слов."
  },
  "own": false
}
`,"./23-counting.json":`{
  "page": "layers",
  "place": {
    "text": "Let us count: one, two, three, four, five, six,"
  },
  "facts": {
    "next": {
      "of": "next",
      "word": "seven"
    },
    "layers": {
      "of": "layers"
    }
  },
  "point": "picture",
  "title": {
    "en": "It can count",
    "zh-Hans": "它会数数",
    "ru": "Она умеет считать"
  },
  "words": {
    "en": "Nobody gave this machine a rule for numbers. It has read that seven comes after six, and that a row which goes up by one goes on so. The column on the right shows at which layer the next number appears.",
    "zh-Hans": "没有人给过这台机器数数的规则。它只是读到过六后面是七，一串逐一增大的数会这样继续。最右边一列显示，下一个数在哪一层出现。",
    "ru": "Правила для чисел никто этой машине не давал. Она читала, что за шестью идёт семь, а ряд, который растёт на единицу, так и продолжается. Правый столбец показывает, на каком слое появляется следующее число."
  },
  "here": [
    {
      "if": {
        "next.right": [1, 1],
        "layers.settled": [0, null]
      },
      "en": "The model goes on with {next.token} ({next.share}); it comes first from layer {layers.settled} on.",
      "zh-Hans": "模型接下去是 {next.token}（{next.share}）；它从第 {layers.settled} 层起排在第一。",
      "ru": "Модель продолжает: {next.token} ({next.share}); этот токен стоит первым начиная со слоя {layers.settled}."
    },
    {
      "en": "The model goes on with {next.token} ({next.share}).",
      "zh-Hans": "模型接下去是 {next.token}（{next.share}）。",
      "ru": "Модель продолжает: {next.token} ({next.share})."
    }
  ],
  "try": {
    "en": "Count down, by twos, or in digits. How far does it get?",
    "zh-Hans": "倒着数、隔一个数，或改用数字。它能数多远？",
    "ru": "Считайте назад, через два или цифрами. Далеко ли она дойдёт?"
  },
  "own": false
}
`,"./24-logits.json":`{
  "page": "walk",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "step": "logits"
  },
  "facts": {
    "size": {
      "of": "size"
    },
    "next": {
      "of": "next"
    }
  },
  "point": "picture",
  "title": {
    "en": "A score for every word",
    "zh-Hans": "给每个词一个得分",
    "ru": "Оценка каждому слову"
  },
  "words": {
    "en": "The last vector is compared with a row of {width} numbers for each token of the vocabulary. The better they fit, the higher the score. Softmax turns the scores into probabilities: the bars of the first page.",
    "zh-Hans": "最后的向量与词表里每个词元的一行（{width} 个数）相比较。越吻合，得分越高。softmax 把得分变成概率，这就是第一页的条形。",
    "ru": "Последний вектор сравнивается со строкой каждого токена словаря ({width|# число|# числа|# чисел}). Чем лучше подходит, тем выше оценка. Softmax превращает оценки в вероятности: это полосы первой страницы."
  },
  "here": [
    {
      "if": {
        "size.tied": [1, 1]
      },
      "en": "It is the matrix that the journey began with. The best row here is that of {next.token}.",
      "zh-Hans": "用的正是旅程开始时的那个矩阵。这里最吻合的是 {next.token} 的行。",
      "ru": "Это та же матрица, с которой начался путь. Лучше всех здесь подходит строка {next.token}."
    },
    {
      "en": "This model has a matrix of its own for it. The best row here is that of {next.token}.",
      "zh-Hans": "这个模型为此另有一个矩阵。这里最吻合的是 {next.token} 的行。",
      "ru": "Для этого у модели есть своя матрица. Лучше всех здесь подходит строка {next.token}."
    }
  ],
  "try": {
    "en": "Go one step on to see the choice.",
    "zh-Hans": "再走一步，看怎样选定。",
    "ru": "Ещё шаг — и увидите выбор."
  }
}
`,"./25-choice.json":`{
  "page": "predict",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She",
    "settings": {
      "temperature": "0.8",
      "top_k": "40"
    }
  },
  "facts": {
    "heat": {
      "of": "temperatures",
      "cold": 0.3,
      "hot": 2.0,
      "top_k": 40
    }
  },
  "point": "details",
  "title": {
    "en": "How one is chosen",
    "zh-Hans": "怎样选出一个",
    "ru": "Как выбирают"
  },
  "words": {
    "en": "Always taking the likeliest gives the same text every time, and often one that goes round in circles. So one is drawn at random, each as often as its probability says. Temperature makes the draw bolder or more careful; top-k and top-p leave out the unlikely.",
    "zh-Hans": "总取最可能的词元，每次都写出同样的文本，还常常原地打转。所以按概率随机抽取，概率越大，越常抽中。温度让抽取更大胆或更谨慎；top-k 和 top-p 去掉不太可能的。",
    "ru": "Если всегда брать самый вероятный токен, текст каждый раз один и тот же и нередко ходит по кругу. Поэтому токен выбирают случайно, и каждый выпадает с частотой, равной его вероятности. Температура делает выбор смелее или осторожнее; top-k и top-p отсекают маловероятное."
  },
  "ask": {
    "question": {
      "en": "{heat.token} is the likeliest here. How often would it be drawn at temperature 2, in percent?",
      "zh-Hans": "{heat.token} 在这里最可能。温度为 2 时，它被抽中的几率是百分之几？",
      "ru": "{heat.token} здесь вероятнее всех. С какой вероятностью, в процентах, он выпадет при температуре 2?"
    },
    "answer": "heat.hot"
  },
  "here": [
    {
      "en": "Of the {heat.kept} likeliest, {heat.token} would be drawn {heat.cold} of the time at temperature 0.3, and {heat.hot} at 2.",
      "zh-Hans": "在最可能的 {heat.kept} 个词元中，{heat.token} 在温度 0.3 时有 {heat.cold} 的几率被抽中，在温度 2 时有 {heat.hot}。",
      "ru": "Из {heat.kept} самых вероятных {heat.token} выпадает при температуре 0,3 с вероятностью {heat.cold}, а при 2 — {heat.hot}."
    }
  ],
  "try": {
    "en": "Move the temperature to 2 and let chance choose; then to 0.3.",
    "zh-Hans": "把温度调到 2，按“随机抽取”；再调到 0.3。",
    "ru": "Поставьте температуру 2 и нажмите «Выбрать случайно»; потом 0,3."
  }
}
`,"./26-loop.json":`{
  "page": "generate",
  "place": {
    "text": "Max and Lily and Max and Lily and",
    "settings": {
      "n": "60",
      "top_k": "1"
    }
  },
  "facts": {
    "loop": {
      "of": "loop",
      "tokens": 60
    }
  },
  "point": "picture",
  "title": {
    "en": "Stuck in a loop",
    "zh-Hans": "原地打转",
    "ru": "По кругу"
  },
  "words": {
    "en": "Top-k 1 always takes the likeliest token. Once a piece of text has been said twice, saying it again is often the likeliest, and a third time likelier still: the text goes round in circles. Drawing among the likeliest few breaks out.",
    "zh-Hans": "top-k 为 1 时总取最可能的词元。一段话说过两遍，再说一遍往往就最可能，第三遍更是如此：文本开始原地打转。在最可能的几个里随机抽取，就能跳出来。",
    "ru": "При top-k = 1 всегда берётся самый вероятный токен. Сказанное дважды часто вероятнее всего сказать снова, а в третий раз и подавно: текст ходит по кругу. Выбор наугад среди нескольких вероятных разрывает круг."
  },
  "here": [
    {
      "if": {
        "loop.found": [1, 1],
        "loop.freed": [1, 1]
      },
      "en": "Here the last {loop.period|# token|# tokens} written repeat those before. Drawn among the 40 likeliest instead (seed {loop.seed}), the text has no such loop.",
      "zh-Hans": "这里写下的最后 {loop.period} 个词元与它们之前的相同。改在最可能的 40 个中抽取（随机种子 {loop.seed}），就没有这样的循环。",
      "ru": "Здесь последние {loop.period|# токен|# токена|# токенов} повторяют предыдущие. Если выбирать из 40 вероятных (начальное число {loop.seed}), круга нет."
    },
    {
      "if": {
        "loop.found": [1, 1]
      },
      "en": "Here the last {loop.period|# token|# tokens} written repeat those before.",
      "zh-Hans": "这里写下的最后 {loop.period} 个词元与它们之前的相同。",
      "ru": "Здесь последние {loop.period|# токен|# токена|# токенов} повторяют предыдущие."
    },
    {
      "en": "This model does not get stuck here, at least not within {loop.written|# token|# tokens}.",
      "zh-Hans": "这个模型在这里没有打转，至少在 {loop.written} 个词元之内没有。",
      "ru": "Эта модель здесь не зацикливается — по крайней мере за {loop.written|# токен|# токена|# токенов}."
    }
  ],
  "try": {
    "en": "Set top-k to 40 and write again. Then look for a text of your own that gets stuck.",
    "zh-Hans": "把 top-k 设为 40 再写一遍。再找一段您自己的、会打转的文本。",
    "ru": "Поставьте top-k 40 и напишите снова. Потом найдите свой текст, который зациклится."
  }
}
`,"./27-write.json":`{
  "page": "generate",
  "place": {
    "text": "Once upon a time, there was a dog named",
    "settings": {
      "n": "20"
    }
  },
  "point": "picture",
  "title": {
    "en": "Again and again",
    "zh-Hans": "一遍又一遍",
    "ru": "Снова и снова"
  },
  "words": {
    "en": "Choose, append, read again: that is all there is to generation. Here are the tokens that were written, one after the other. Click one to see which others could have come in its place, and how likely each was.",
    "zh-Hans": "选一个，接上去，再读：生成不过如此。这里是写下的词元，一个接一个。点其中一个，看当时还可能是哪些，每个有多大几率。",
    "ru": "Выбрать, дописать, прочесть снова — вот и вся генерация. Здесь написанные токены, один за другим. Нажмите на любой: увидите, какие могли быть на его месте и с какой вероятностью."
  },
  "try": {
    "en": "Change the seed. The first token is drawn with the same probabilities, only the die rolls another number; after the first difference the probabilities differ, too.",
    "zh-Hans": "换一个随机种子。第一个词元的几率不变，只是掷出的数不同；从第一处不同开始，几率也就不同了。",
    "ru": "Смените начальное число. Вероятности первого токена те же, только на кости выпадает другое число; после первого отличия меняются и вероятности."
  }
}
`,"./28-cache.json":`{
  "page": "generate",
  "place": {
    "text": "Once upon a time, there was a dog named",
    "settings": {
      "n": "20"
    }
  },
  "point": "cache",
  "title": {
    "en": "What is kept between steps",
    "zh-Hans": "两步之间留下什么",
    "ru": "Что хранится между шагами"
  },
  "words": {
    "en": "Tokens that have been read do not change: what comes after them is behind the mask and cannot influence them. So their keys and values are kept, and each step after the first computes only the one new token.",
    "zh-Hans": "读过的词元不会再变：被掩码挡住的后文影响不了它们。所以它们的键和值都留着；第一步之后，每一步只算那一个新词元。",
    "ru": "Прочитанные токены уже не изменятся: то, что после них, закрыто маской и на них не влияет. Поэтому их ключи и значения хранят, и каждый шаг после первого вычисляет только один новый токен."
  },
  "try": {
    "en": "How many multiplications does the last step need, with the cache and without it?",
    "zh-Hans": "最后一步，有缓存和没有缓存各要多少次乘法？",
    "ru": "Сколько умножений нужно последнему шагу с кэшем и без него?"
  }
}
`,"./29-weights.json":`{
  "page": "weights",
  "place": {
    "text": "Once upon a time, there was a little girl named Lily. She"
  },
  "facts": {
    "size": {
      "of": "size"
    }
  },
  "point": "picture",
  "title": {
    "en": "Counting the weights",
    "zh-Hans": "数一数权重",
    "ru": "Пересчитаем веса"
  },
  "words": {
    "en": "These matrices, with a few vectors beside them, are the whole model: one for tokens, one for positions, and in each block one for query, key and value, one for the projection, and two for the network.",
    "zh-Hans": "整个模型就是这些矩阵，外加几个向量：词元和位置各一个；每个块里，查询、键、值合用一个，投影一个，网络两个。",
    "ru": "Вся модель — это такие матрицы и несколько векторов при них: одна для токенов, одна для позиций, а в каждом блоке одна для запроса, ключа и значения, одна для проекции и две для сети."
  },
  "here": [
    {
      "if": {
        "size.same": [1, 1]
      },
      "en": "Together they are {size.total} numbers: this is the smallest GPT-2.",
      "zh-Hans": "一共 {size.total} 个数：这就是最小的 GPT-2。",
      "ru": "Всего {size.total|# число|# числа|# чисел}: это самая маленькая GPT-2."
    },
    {
      "en": "This model has {size.total} weights; the smallest GPT-2, counted in the same way, has {size.small}.",
      "zh-Hans": "这个模型有 {size.total} 个权重；同样数一遍，最小的 GPT-2 有 {size.small} 个。",
      "ru": "В этой модели {size.total|# вес|# веса|# весов}; у самой маленькой GPT-2, если считать так же, {size.small}."
    }
  ],
  "try": {
    "en": "Which kind of matrix holds the most weights here, and which in the four sizes of GPT-2?",
    "zh-Hans": "这里哪一类矩阵的权重最多？在 GPT-2 的四种规格里呢？",
    "ru": "В каких матрицах весов больше всего здесь и в каких — у четырёх размеров GPT-2?"
  }
}
`,"./30-training.json":`{
  "page": "layers",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "settings": {
      "mode": "rank"
    }
  },
  "facts": {
    "layers": {
      "of": "layers"
    }
  },
  "point": "picture",
  "title": {
    "en": "How it learned",
    "zh-Hans": "它是怎样学会的",
    "ru": "Как она училась"
  },
  "words": {
    "en": "Training begins with random weights. At each position of a text the model guesses the next token, is told the right one, and every weight is moved a little so that the right one gets likelier. Each column here is one such exercise: a text trains all its positions at once.",
    "zh-Hans": "训练从随机的权重开始。在文本的每个位置，模型猜下一个词元，再被告知正确的那个，每个权重就挪一点点，让正确的更可能。这里的每一列都是这样一道题：一段文本同时训练它的所有位置。",
    "ru": "Обучение начинается со случайных весов. В каждой позиции текста модель угадывает следующий токен, узнаёт верный, и каждый вес чуть сдвигают, чтобы верный стал вероятнее. Каждый столбец здесь — такое упражнение: текст учит сразу во всех своих позициях."
  },
  "here": [
    {
      "en": "The numbers are ranks: 1 means that the right token came first. In the top row it did at {layers.first} of {layers.places} positions.",
      "zh-Hans": "表中是名次：1 表示正确的词元排第一。最上面一行的 {layers.places} 个位置中有 {layers.first} 个如此。",
      "ru": "Числа — ранги: 1 значит, что верный токен был первым. В верхней строке так в {layers.first|# позиции|# позициях|# позициях} из {layers.places}."
    }
  ],
  "try": {
    "en": "Where was the model most surprised?",
    "zh-Hans": "哪里最让它意外？",
    "ru": "Где модель удивилась сильнее всего?"
  }
}
`,"./31-translation.json":`{
  "page": "tasks",
  "place": {
    "text": "She is my friend."
  },
  "point": "picture",
  "title": {
    "en": "The same machine translates",
    "zh-Hans": "同一台机器会翻译",
    "ru": "Та же машина переводит"
  },
  "words": {
    "en": "Write a sentence, a separator, and its translation, many times over, and let the model learn to go on after the separator. No new part is needed: translating is guessing the next word of a translation.",
    "zh-Hans": "写一句话、一个分隔符、再写译文，成千上万遍，让模型学会在分隔符之后接着写。不需要任何新零件：翻译就是猜译文的下一个词。",
    "ru": "Запишите фразу, разделитель и перевод, и так много раз, и пусть модель учится продолжать после разделителя. Новых деталей не нужно: переводить — значит угадывать следующее слово перевода."
  },
  "try": {
    "en": "Choose a word of the answer. Which source words did it look at?",
    "zh-Hans": "选译文里的一个词。它看了原文的哪些词？",
    "ru": "Выберите слово ответа. На какие слова исходной фразы оно смотрело?"
  }
}
`,"./32-tuning.json":`{
  "page": "tasks",
  "place": {
    "text": "The bank said it raised its prime rate to eight percent, effective immediately.",
    "settings": {
      "with": "summarizer"
    }
  },
  "point": "picture",
  "title": {
    "en": "Train once, then fine-tune",
    "zh-Hans": "先训练一次，再微调",
    "ru": "Обучить один раз, потом дообучить"
  },
  "words": {
    "en": "Summaries, answers, even music written as tokens: each is a text to go on with. A model trained on plenty of ordinary text needs only a little of the new kind to be fine-tuned for it.",
    "zh-Hans": "摘要、问答，甚至写成词元的音乐，都是可以往下接的文本。用大量普通文本训练过的模型，只需少量新类型的文本就能微调好。",
    "ru": "Пересказы, ответы, даже музыка, записанная токенами, — всё это тексты, которые можно продолжить. Модель, обученную на множестве обычного текста, достаточно дообучить на небольшом числе новых примеров."
  },
  "try": {
    "en": "Switch to another task. The machine is the same, only its weights differ.",
    "zh-Hans": "换一个任务。机器还是那台，只是权重不同。",
    "ru": "Переключите задачу. Машина та же, другие только веса."
  }
}
`,"./33-causes.json":`{
  "page": "causes",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his"
  },
  "facts": {
    "cause": {
      "of": "cause"
    }
  },
  "point": "picture",
  "title": {
    "en": "Which words caused this one?",
    "zh-Hans": "是哪些词引出了它？",
    "ru": "Какие слова вызвали это слово?"
  },
  "words": {
    "en": "Now ask backwards. Take a token that the model predicts: how much would a small change at each earlier token change its score? The stronger the colour, the more that token counted; together they make 100%.",
    "zh-Hans": "现在反过来问。取模型预测的一个词元：前面每个词元稍作改变，它的得分会变多少？颜色越深，那个词元越重要；合计 100%。",
    "ru": "Теперь спросим в обратную сторону. Насколько изменилась бы оценка предсказанного токена, если чуть изменить каждый из предыдущих? Чем насыщеннее цвет, тем важнее токен; все вместе — 100\xA0%."
  },
  "ask": {
    "question": {
      "en": "The model goes on with {cause.target}. Which word of the text counted most for that?",
      "zh-Hans": "模型接下去是 {cause.target}。文本里哪个词对此最重要？",
      "ru": "Модель продолжает: {cause.target}. Какое слово текста было для этого важнее всех?"
    },
    "answer": "cause.token"
  },
  "here": [
    {
      "if": {
        "cause.against": [1, 1]
      },
      "en": "The likeliest next token is {cause.target}. {cause.token} counted most: {cause.share}, with a minus sign, for it lowers the score.",
      "zh-Hans": "最可能的下一个词元是 {cause.target}。最重要的是 {cause.token}：{cause.share}，带负号，因为它降低得分。",
      "ru": "Самый вероятный следующий токен — {cause.target}. Важнее всех {cause.token}: {cause.share}, с минусом: он снижает оценку."
    },
    {
      "en": "The likeliest next token is {cause.target}. {cause.token} counted most: {cause.share}, and it raises the score.",
      "zh-Hans": "最可能的下一个词元是 {cause.target}。最重要的是 {cause.token}：{cause.share}，它提高得分。",
      "ru": "Самый вероятный следующий токен — {cause.target}. Важнее всех {cause.token}: {cause.share}, и он повышает оценку."
    }
  ],
  "try": {
    "en": "Click a token in the middle of the text: which ones counted for it?",
    "zh-Hans": "点文本中间的一个词元：对它来说哪些重要？",
    "ru": "Нажмите на токен в середине текста: какие были важны для него?"
  }
}
`,"./34-watch.json":`{
  "page": "layers",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "settings": {
      "watch_a": "ball",
      "watch_b": "mom"
    }
  },
  "facts": {
    "race": {
      "of": "race",
      "one": "ball",
      "other": "mom"
    }
  },
  "point": "watch",
  "title": {
    "en": "Two words in a race",
    "zh-Hans": "两个词赛跑",
    "ru": "Два слова наперегонки"
  },
  "words": {
    "en": "At which layer does the model make up its mind? Two words are compared here, layer by layer. The one whose line ends higher has won.",
    "zh-Hans": "模型在哪一层拿定主意？让两个词逐层比较。末端更高的那条线赢了。",
    "ru": "На каком слое модель принимает решение? За двумя словами следят слой за слоем. Побеждает то, чья линия заканчивается выше."
  },
  "here": [
    {
      "if": {
        "race.crossings": [1, null]
      },
      "en": "Here the lines cross: from layer {race.layer} on, {race.winner} is ahead of {race.loser}.",
      "zh-Hans": "这里两条线交叉：从第 {race.layer} 层起，{race.winner} 领先于 {race.loser}。",
      "ru": "Здесь линии пересекаются: начиная со слоя {race.layer} {race.winner} впереди {race.loser}."
    },
    {
      "en": "Here the lines do not cross: {race.winner} is ahead of {race.loser} in every layer.",
      "zh-Hans": "这里两条线不交叉：每一层都是 {race.winner} 领先于 {race.loser}。",
      "ru": "Здесь линии не пересекаются: {race.winner} впереди {race.loser} на каждом слое."
    }
  ],
  "try": {
    "en": "Watch two words of your own.",
    "zh-Hans": "换上您自己的两个词。",
    "ru": "Проследите за двумя своими словами."
  }
}
`,"./35-neurons.json":`{
  "page": "neurons",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "settings": {
      "kind": "groups"
    }
  },
  "facts": {
    "first": {
      "of": "neurons"
    }
  },
  "point": "together",
  "title": {
    "en": "Neurons that fire together",
    "zh-Hans": "一起激活的神经元",
    "ru": "Нейроны, которые срабатывают вместе"
  },
  "words": {
    "en": "There are too many neurons to look at them one by one. Those that fire on the same tokens are gathered here into groups. The line of each group follows the text: it is high where the group fires.",
    "zh-Hans": "神经元太多，没法一个个看。在相同词元上激活的在这里归成组。每组的曲线沿着文本走：哪里高，这组就在哪里激活。",
    "ru": "Нейронов слишком много, чтобы смотреть на каждый. Те, что срабатывают на одних и тех же токенах, собраны здесь в группы. Линия группы идёт вдоль текста: она высока там, где группа срабатывает."
  },
  "here": [
    {
      "en": "This model has {first.all} neurons in all its layers together.",
      "zh-Hans": "这个模型各层加起来共有 {first.all} 个神经元。",
      "ru": "В этой модели {first.all|# нейрон|# нейрона|# нейронов} во всех слоях вместе."
    }
  ],
  "try": {
    "en": "Point at a group. Which tokens light up, and what do they have in common?",
    "zh-Hans": "指向一组。哪些词元亮了？它们有什么共同之处？",
    "ru": "Укажите на группу. Какие токены подсветились и что у них общего?"
  }
}
`,"./36-change.json":`{
  "page": "change",
  "place": {
    "text": "Tom had a red ball. He liked to play with it. One day, Tom lost his",
    "from": "missed",
    "settings": {
      "changes": "[{\\"kind\\":\\"ablate_head\\",\\"layer\\":{layer},\\"head\\":{head}}]"
    }
  },
  "facts": {
    "missed": {
      "of": "missed"
    }
  },
  "point": "picture",
  "title": {
    "en": "Take a part out",
    "zh-Hans": "拿掉一个零件",
    "ru": "Убрать деталь"
  },
  "words": {
    "en": "Looking is not proof. To know what a head does, switch it off and see what the model says then. Before and after stand side by side.",
    "zh-Hans": "光看不算证明。想知道一个头做什么，就去掉它，看模型这时怎么说。改动前后并排对照。",
    "ru": "Смотреть — ещё не доказать. Чтобы узнать, что делает голова, её выключают и смотрят, что модель скажет теперь. До и после стоят рядом."
  },
  "ask": {
    "question": {
      "en": "One head is taken out. Will the model be as sure of {missed.token} as before?",
      "zh-Hans": "拿掉一个头。模型对 {missed.token} 还会像先前一样有把握吗？",
      "ru": "Одну голову убирают. Будет ли модель так же уверена в {missed.token}?"
    },
    "options": [
      {
        "if": {
          "missed.change": [null, -0.05]
        },
        "en": "No, much less",
        "zh-Hans": "不会，会低很多",
        "ru": "Нет, гораздо меньше"
      },
      {
        "en": "Nearly the same",
        "zh-Hans": "差不多",
        "ru": "Почти так же"
      }
    ]
  },
  "here": [
    {
      "if": {
        "missed.change": [null, -0.005]
      },
      "en": "Here head {missed.head} of layer {missed.layer} is taken out, and {missed.token} falls from {missed.before} to {missed.after}.",
      "zh-Hans": "这里去掉了第 {missed.layer} 层的头 {missed.head}，{missed.token} 从 {missed.before} 降到 {missed.after}。",
      "ru": "Здесь убрана голова {missed.head} слоя {missed.layer}, и {missed.token} падает с {missed.before} до {missed.after}."
    },
    {
      "if": {
        "missed.change": [-0.005, 0.005]
      },
      "en": "Here head {missed.head} of layer {missed.layer} is taken out, which changes little: {missed.token} goes from {missed.before} to {missed.after}. The others can do without it.",
      "zh-Hans": "这里去掉了第 {missed.layer} 层的头 {missed.head}，变化很小：{missed.token} 从 {missed.before} 变到 {missed.after}。少了它，别的头也行。",
      "ru": "Здесь убрана голова {missed.head} слоя {missed.layer}, и меняется мало: {missed.token} — с {missed.before} до {missed.after}. Остальные обходятся без неё."
    },
    {
      "en": "Here head {missed.head} of layer {missed.layer} is taken out, and {missed.token} rises from {missed.before} to {missed.after}: the head had been holding it back.",
      "zh-Hans": "这里去掉了第 {missed.layer} 层的头 {missed.head}，{missed.token} 反而从 {missed.before} 升到 {missed.after}：原来是这个头在压低它。",
      "ru": "Здесь убрана голова {missed.head} слоя {missed.layer}, и {missed.token} растёт с {missed.before} до {missed.after}: голова его сдерживала."
    }
  ],
  "try": {
    "en": "Put it back and take out others. Which one is missed most?",
    "zh-Hans": "把它放回去，再去掉别的。少了哪个影响最大？",
    "ru": "Верните её и уберите другие. Без какой хуже всего?"
  }
}
`,"./37-recurrent.json":`{
  "page": "translator",
  "place": {
    "model": "rnn",
    "text": "She bought a red car.",
    "settings": {
      "time": "5"
    }
  },
  "facts": {
    "state": {
      "of": "carried"
    }
  },
  "point": "unrolled",
  "title": {
    "en": "Before: one state, passed on",
    "zh-Hans": "从前：一个状态往下传",
    "ru": "Раньше: одно состояние, от слова к слову"
  },
  "words": {
    "en": "The translators before the Transformer read word by word. After each word such a network keeps one vector, its hidden state, which the next word changes. In the first ones only the last state went on to the network that writes: a whole sentence in one vector.",
    "zh-Hans": "Transformer 之前的翻译网络逐词阅读。每读一个词，它只保留一个向量，即隐藏状态，由下一个词再来改变。最早的网络只把最后一个状态交给负责写译文的网络：整句话都装在一个向量里。",
    "ru": "Переводчики до трансформера читали слово за словом. После каждого сеть хранит один вектор — скрытое состояние; следующее слово его меняет. Поначалу пишущей сети передавали лишь последнее: вся фраза в одном векторе."
  },
  "here": [
    {
      "if": {
        "state.both": [1, 1]
      },
      "en": "Here {state.tokens|# token is|# tokens are} read, and after each the state has {state.width|# number|# numbers}, whatever the length of the sentence; half of them come from reading it backwards.",
      "zh-Hans": "这里读入 {state.tokens} 个词元，每读一个，状态都是 {state.width} 个数，与句子长短无关；其中一半来自从后往前读。",
      "ru": "Здесь прочитано {state.tokens|# токен|# токена|# токенов}, и после каждого состояние — {state.width|# число|# числа|# чисел} при любой длине фразы; половина получена чтением с конца."
    },
    {
      "en": "Here {state.tokens|# token is|# tokens are} read, and after each the state has {state.width|# number|# numbers}, whatever the length of the sentence.",
      "zh-Hans": "这里读入 {state.tokens} 个词元，每读一个，状态都是 {state.width} 个数，与句子长短无关。",
      "ru": "Здесь прочитано {state.tokens|# токен|# токена|# токенов}, и после каждого состояние — {state.width|# число|# числа|# чисел} при любой длине фразы."
    }
  ],
  "try": {
    "en": "At the top of the page, go back to the beginning and press “Play”. Which strips light up with each word?",
    "zh-Hans": "在页面上方回到开头，按“播放”。每读一个词，哪些色条亮起来？",
    "ru": "Наверху страницы вернитесь к началу и нажмите «Воспроизвести». Что загорается с каждым словом?"
  },
  "own": false
}
`,"./38-alignment.json":`{
  "page": "translator",
  "place": {
    "model": "rnn",
    "text": "She bought a red car.",
    "settings": {
      "time": "10"
    }
  },
  "facts": {
    "align": {
      "of": "aligned",
      "one": "voiture",
      "other": "rouge"
    }
  },
  "point": "alignment",
  "title": {
    "en": "Attention: a look back at all of them",
    "zh-Hans": "注意力：回看所有的状态",
    "ru": "Внимание: взгляд на все состояния"
  },
  "words": {
    "en": "Attention took this bottleneck away. All hidden states go over, and for each word it writes the decoder scores them anew: softmax makes weights of the scores, and their weighted sum is what it takes in. So it finds the right word even where the order of the two languages differs.",
    "zh-Hans": "注意力打破了这个瓶颈。所有隐藏状态都交过去；解码器每写一个词，都重新给它们打分：softmax 把分数变成权重，再取加权和。于是即使两种语言语序不同，它也能找到该看的词。",
    "ru": "Внимание убрало это узкое место. Передаются все скрытые состояния, и для каждого слова декодер оценивает их заново: softmax делает из оценок веса, а берёт он взвешенную сумму. Так он находит нужное слово, даже если порядок слов в двух языках разный."
  },
  "here": [
    {
      "if": {
        "align.turned": [1, 1],
        "align.one_weight": [0.5, null],
        "align.other_weight": [0.5, null]
      },
      "en": "For {align.one} it takes {align.one_weight} from {align.one_at}, and for {align.other} {align.other_weight} from {align.other_at}: their order is reversed.",
      "zh-Hans": "写 {align.one} 时从 {align.one_at} 取 {align.one_weight}，写 {align.other} 时从 {align.other_at} 取 {align.other_weight}：两个词换了位置。",
      "ru": "Для {align.one} берётся {align.one_weight} у {align.one_at}, для {align.other} — {align.other_weight} у {align.other_at}: слова меняются местами."
    },
    {
      "en": "For {align.one} it looks most at {align.one_at}, with {align.one_weight} of its weight, and for {align.other} at {align.other_at}, with {align.other_weight}.",
      "zh-Hans": "写 {align.one} 时它最看 {align.one_at}，权重 {align.one_weight}；写 {align.other} 时最看 {align.other_at}，权重 {align.other_weight}。",
      "ru": "Для {align.one} он больше всего смотрит на {align.one_at} с весом {align.one_weight}, для {align.other} — на {align.other_at} с весом {align.other_weight}."
    }
  ],
  "try": {
    "en": "Try “I saw a white house.” Where do the lines cross?",
    "zh-Hans": "试试 “I saw a white house.”。哪里的线交叉？",
    "ru": "Попробуйте «I saw a white house.». Где линии пересекаются?"
  },
  "own": false
}
`,"./39-two-stacks.json":`{
  "page": "translator",
  "place": {
    "model": "transformer",
    "text": "She bought a red car."
  },
  "facts": {
    "stack": {
      "of": "stacked"
    }
  },
  "point": "living",
  "title": {
    "en": "Two stacks, of which one stayed",
    "zh-Hans": "两摞块，留下一摞",
    "ru": "Два стека, из которых остался один"
  },
  "words": {
    "en": "The Transformer gave up recurrence and kept attention. Its encoder reads the source in both directions; its decoder writes, and each of its blocks has a second attention, which looks into the encoder. GPT-2 is the decoder alone, without that second attention: what it reads and writes is one text.",
    "zh-Hans": "Transformer 抛开循环，只留注意力。编码器双向阅读原文；解码器写译文，每个块里另有一层注意力去看编码器。GPT-2 只要解码器，去掉了那层注意力：它读的和写的是同一段文本。",
    "ru": "Трансформер отказался от рекуррентности и оставил внимание. Его энкодер читает исходный текст в обе стороны; декодер пишет, и в каждом его блоке есть второе внимание — к энкодеру. GPT-2 — один декодер без этого второго внимания: читает и пишет он один и тот же текст."
  },
  "here": [
    {
      "if": {
        "stack.attentions": [
          2,
          null
        ]
      },
      "en": "This one has {stack.blocks|# block|# blocks} in either stack: one attention in each block of the encoder, two in each of the decoder, {stack.attentions} kinds in all.",
      "zh-Hans": "这个模型的每摞有 {stack.blocks} 个块：编码器每块一层注意力，解码器每块两层，一共 {stack.attentions} 种。",
      "ru": "В этой модели {stack.blocks|# блок|# блока|# блоков} в каждом стеке: одно внимание в блоке энкодера, два в блоке декодера, всего видов {stack.attentions}."
    },
    {
      "en": "This model has {stack.blocks|# block|# blocks}, and in each there is one attention, to its own text.",
      "zh-Hans": "这个模型有 {stack.blocks} 个块，每块只有一层注意力，看的是自己的文本。",
      "ru": "В этой модели {stack.blocks|# блок|# блока|# блоков}, и в каждом одно внимание — к собственному тексту."
    }
  ],
  "try": {
    "en": "Press Play in the picture: first the encoder reads, all words at once; then the decoder writes, a word at a time. Which words does each look at?",
    "zh-Hans": "按图中的“播放”：先是编码器一次读完所有词，再由解码器逐词写出。每个词看的是哪些词？",
    "ru": "Нажмите «Воспроизвести» у картинки: сначала энкодер читает все слова сразу, потом декодер пишет слово за словом. На какие слова смотрит каждое?"
  }
}
`,"./40-contest.json":`{
  "page": "contest",
  "place": {
    "text": "The little dog is under the table."
  },
  "point": "picture",
  "title": {
    "en": "One sentence through all of them",
    "zh-Hans": "同一个句子，所有的机器",
    "ru": "Одно предложение через все машины"
  },
  "words": {
    "en": "Here the same sentence goes through every translator on this machine, from the recurrent network to the decoder alone. What all of them wrote is underlined. Pick a word, and below each translation stands which words of the sentence it came from, as far as that model has attention.",
    "zh-Hans": "这里，同一个句子交给本机所有的翻译模型，从循环网络到单独的解码器。大家都写了的词带实线。选一个词，每个译文下面就显示它来自原文的哪些词，只要那个模型有注意力。",
    "ru": "Здесь одно предложение проходит через все переводчики этого компьютера, от рекуррентной сети до одиночного декодера. Подчёркнуто то, что написали все. Выберите слово, и под каждым переводом видно, из каких слов оно взято, — если у модели есть внимание."
  },
  "try": {
    "en": "Try “I saw a white house.” Which translation lacks a word?",
    "zh-Hans": "试试 “I saw a white house.”。哪个译文少了一个词？",
    "ru": "Попробуйте «I saw a white house.». В каком переводе не хватает слова?"
  },
  "own": false
}
`,"./41-gap.json":`{
  "page": "encoder",
  "place": {
    "text": "The little dog began to [MASK] at the cat.",
    "model": "bert"
  },
  "facts": {
    "gap": {
      "of": "gap"
    }
  },
  "point": "text",
  "title": {
    "en": "BERT: a gap, seen from both sides",
    "zh-Hans": "BERT：从两边看空缺",
    "ru": "BERT: пропуск с двух сторон"
  },
  "words": {
    "en": "BERT is the encoder alone. Some words are hidden, and it learns to guess them from what stands on both sides, where GPT-2 sees only what comes before. So BERT writes no texts, but its vectors say more about each word: for classes, for names, for search.",
    "zh-Hans": "BERT 只要编码器。遮住一些词，让它根据两边的上下文去猜；GPT-2 只看得到前面。所以 BERT 不写文章，但它的向量更能说明每个词：可用来分类、识别名称、检索。",
    "ru": "BERT — один энкодер. Часть слов скрывают, и он учится угадывать их по тому, что стоит с обеих сторон; GPT-2 видит только то, что раньше. Текстов BERT не пишет, зато его векторы говорят о каждом слове больше: для классов, имён, поиска."
  },
  "here": [
    {
      "if": {
        "gap.there": [
          1,
          1
        ]
      },
      "en": "Into this gap it would put {gap.token}, with a probability of {gap.share}.",
      "zh-Hans": "这个空缺它会填 {gap.token}，概率 {gap.share}。",
      "ru": "В этот пропуск модель поставила бы {gap.token} с вероятностью {gap.share}."
    },
    {
      "en": "This model fills no gaps: the small BERT that comes along does.",
      "zh-Hans": "这个模型不会填空；软件自带的小 BERT 会。",
      "ru": "Эта модель пропусков не заполняет: это делает маленькая BERT из комплекта."
    }
  ],
  "try": {
    "en": "Hide another word by a click. Does it find that one, too?",
    "zh-Hans": "点一下，再遮住一个词。它也找得到吗？",
    "ru": "Скройте щелчком ещё одно слово. Найдёт ли модель и его?"
  },
  "own": false
}
`,"./42-senses.json":`{
  "page": "senses",
  "place": {
    "text": "Let's stick to the plan."
  },
  "facts": {
    "sense": {
      "of": "sense",
      "other": "He found a stick in the wood.",
      "word": "stick"
    }
  },
  "point": "alike",
  "title": {
    "en": "One word, two senses",
    "zh-Hans": "一个词，两个意思",
    "ru": "Одно слово, два значения"
  },
  "words": {
    "en": "A list of word vectors has one vector for “stick”, the verb and the noun alike. ELMo reads the sentence first and gives the word another vector in each, made of what stands around it. All models of this family do so; GPT-2 makes it of what stands before.",
    "zh-Hans": "词向量表里，“stick” 不管作动词还是名词，都只有一个向量。ELMo 先读句子，再根据上下文给词算向量，每句都不同。这一家的模型都这样做；GPT-2 只用前面的内容。",
    "ru": "В списке векторов слов у «stick» один вектор — и у глагола, и у существительного. ELMo сначала читает фразу и даёт слову в каждой свой вектор из того, что стоит вокруг. Так делают все модели этой семьи; GPT-2 — из того, что стоит раньше."
  },
  "here": [
    {
      "if": {
        "sense.last": [null, 0.85]
      },
      "en": "The two vectors of “stick” have a cosine of {sense.first} at the entry, where only the position differs, and of {sense.last} after the last block.",
      "zh-Hans": "两个 “stick” 的向量，在入口处余弦为 {sense.first}，那里只差位置；在最后一个块之后是 {sense.last}。",
      "ru": "Косинус двух векторов «stick» на входе, где различается только место, равен {sense.first}, а после последнего блока — {sense.last}."
    },
    {
      "en": "In this model the two vectors stay alike: their cosine is {sense.first} at the entry and {sense.last} after the last block.",
      "zh-Hans": "在这个模型里两个向量仍然相近：入口处余弦为 {sense.first}，最后一个块之后是 {sense.last}。",
      "ru": "В этой модели два вектора остаются похожи: косинус на входе {sense.first}, после последнего блока {sense.last}."
    }
  ],
  "try": {
    "en": "Choose another layer. In which do the neighbours tell the two senses apart best?",
    "zh-Hans": "换一层看看。哪一层的近邻最能分清两个意思？",
    "ru": "Выберите другой слой. В каком соседи лучше всего различают два значения?"
  },
  "own": false
}
`,"./43-yours.json":`{
  "page": "predict",
  "place": {
    "text": "One day, a little robot found"
  },
  "point": "text",
  "title": {
    "en": "Now yours",
    "zh-Hans": "轮到您了",
    "ru": "Теперь ваш текст"
  },
  "words": {
    "en": "That was the whole machine: tokens, two matrices, a stack of blocks that look and think, and a choice. Every page works on any text that you write, and with any GPT-2 from the menu of models.",
    "zh-Hans": "整台机器就是这些：词元、两个矩阵、一摞会看会想的块，还有一次选择。每一页都能用于您写的任何文本，也能用于模型菜单里的任何 GPT-2。",
    "ru": "Вот и вся машина: токены, две матрицы, стопка блоков, которые смотрят и думают, и выбор. Каждая страница работает с любым вашим текстом и с любой GPT-2 из меню моделей."
  },
  "try": {
    "en": "Press “Write” and try a text of your own.",
    "zh-Hans": "按“编辑”，写一段您自己的文本。",
    "ru": "Нажмите «Писать» и попробуйте свой текст."
  }
}
`});function yt({name:e,page:t,place:n},r,i,a=n.text??``){let o=n.from&&i?.[n.from]||{},s=e=>o[e]?.as===`count`?o[e].value:null,c=s(`layer`)??n.layer??0,l=s(`head`)??n.head??0,u=Object.fromEntries(Object.entries(n.settings??{}).map(([e,t])=>[e,t.replaceAll(`{layer}`,String(c)).replaceAll(`{head}`,String(l))]));o.tree?.as===`text`&&(u.tree=o.tree.value);let d=o.more?.as===`ids`?o.more.value:[];return{page:t,model:n.model??r,text:a,more:d,position:s(`position`)??n.position??null,layer:c,head:l,step:n.step??``,settings:u,tour:e,beside:n.beside??null}}var bt=e=>ft.some(t=>t.name===e.page),xt=Object.entries(vt).sort(([e],[t])=>e<t?-1:1).map(([e,t])=>({...JSON.parse(t),name:/\d+-([\w-]+)\.json$/.exec(e)[1]})).filter(bt),St=e=>e.steps.map(({use:e,...t})=>{let n=xt.find(t=>t.name===e);return{...n,...t,place:{...n?.place,...t.place}}}).filter(bt),Ct=e=>e.own?{...e,...e.own}:e,wt=location.hash.length<3,Tt=/[?&]tour=/.test(location.hash)&&!/[?&]text=/.test(location.hash),Et=`over`,$=new class{#e=A(Se(Te(`tour`)));#t=A(null);get given(){return B(this.#t)}set given(e){D(this.#t,e)}#n=A(null);get failure(){return B(this.#n)}set failure(e){D(this.#n,e)}#r=A(!1);get remote(){return B(this.#r)}set remote(e){D(this.#r,e,!0)}#i=f(()=>this.given?St(this.given):[]);#a=f(()=>{let e=e=>e.some(e=>e.name===R.tour),t=e(B(this.#i))||B(this.#i).length&&!e(xt)?B(this.#i):xt,n=fe.list.length?t.filter(({place:e})=>!e.model||fe.list.some(t=>t.name===e.model)):t;return R.own?n.filter(e=>e.own!==!1).map(Ct):n});get steps(){return B(this.#a)}set steps(e){D(this.#a,e)}#o=f(()=>this.steps.find(e=>e.name===R.tour)??null);get step(){return B(this.#o)}set step(e){D(this.#o,e)}#s=f(()=>this.step?this.steps.indexOf(this.step):-1);get at(){return B(this.#s)}set at(e){D(this.#s,e)}#c=f(()=>this.step!==null&&j(R.place())!==this.address(this.step));get strayed(){return B(this.#c)}set strayed(e){D(this.#c,e)}#l=A({});#u=A({});#d=``;#f=A(0);get beat(){return B(this.#f)}set beat(e){D(this.#f,e,!0)}get offered(){return wt&&B(this.#e)===null&&!this.step}get entrance(){return this.address(this.step??this.steps.find(e=>e.name===B(this.#e))??this.steps[0])}#p(e){let t=this.steps.some(e=>e.place.model===R.model);return t&&this.#d||(this.#d=t?b.model:R.model),e.place.model??this.#d}#m(e){return JSON.stringify([this.#p(e),e.name,this.#h(e)])}#h(e){return R.own?R.text:e.place.text??``}facts(e){return B(this.#l)[this.#m(e)]??null}#g(e){let{own:t,present:n}=R;return{...yt(e,this.#p(e),this.facts(e),this.#h(e)),own:t,present:n}}address(e){return j(this.#g(e))}async open(){let e=Ve?null:await fetch(`api/tour`).catch(()=>null),t=e?.headers.get(`content-type`)?.includes(`json`)?await e.json():null;this.failure=t?.error??null,this.given=t?.tour??null,this.remote=t?.remote??!1,Tt&&this.step&&R.show(this.#g(this.step))}async ask(e,t){let{own:n}=R,[r,i,a]=[this.#p(e),this.#m(e),this.#h(e)];if(!e.facts||this.facts(e))return;let o=await Ce(`facts`,{model:r,text:a,facts:e.facts,own:n},t);if(t.aborted||r!==R.model)return;let s=this.step===e&&!this.strayed;D(this.#l,{...B(this.#l),[i]:o}),s&&e.place.from&&R.show(this.#g(e))}neighbour(e){return this.at<0?null:this.steps[this.at+e]??null}guess(e){return B(this.#u)[this.#m(e)]??null}make(e,t){D(this.#u,{...B(this.#u),[this.#m(e)]:t});let n=this.beats(e).indexOf(`here`);n>=0&&(this.beat=n)}get veiled(){return!!this.step?.ask&&this.guess(this.step)===null&&R.page===this.step.page}answer(e){let{ask:t}=e,n=this.facts(e);if(t?.right)return String(t.right);if(!t||!n)return null;if(t.answer)return mt(pt(n,t.answer))||null;let r=t.options??[],i=r.findIndex(e=>e.if&&ht(e,n)),a=i<0?r.findIndex(e=>!e.if):i;return a<0?null:String(a+1)}beats(e){return[`words`,...e.ask?[`ask`]:[],...e.here||e.ask?[`here`]:[],...e.try?[`try`]:[]]}go(e){let t=this.neighbour(e);t&&(location.hash=this.address(t))}turn(e){if(!this.step)return;let t=this.beats(this.step);e===1&&t[this.beat]===`ask`&&this.veiled?this.make(this.step,``):this.beat+e>=0&&this.beat+e<t.length?this.beat+=e:this.go(e)}own(e){R.own=e,!e&&this.step&&R.show(this.#g(this.step))}present(e){this.beat=0,R.present=e}leave(){this.#_(this.neighbour(1)&&this.step?this.step.name:Et),R.tour=``,R.own=!1}decline(){this.#_(Et)}saw(e){this.beat=0,this.#_(e.name)}#_(e){B(this.#e)!==e&&(D(this.#e,e,!0),Ae(`tour`,e))}},Dt=new class{#e=A(!1);get help(){return B(this.#e)}set help(e){D(this.#e,e,!0)}#t=A(!1);get editing(){return B(this.#t)}set editing(e){D(this.#t,e,!0)}#n=null;own(e){return this.#n=e,()=>{this.#n===e&&(this.#n=null)}}press(e){let t=e.target;if(!(e.defaultPrevented||e.altKey||te(t)||document.querySelector(`dialog[open]`))){if(e.ctrlKey||e.metaKey)this.#i(e)&&e.preventDefault();else{if(R.present&&$.step&&this.#r(e,t))return e.preventDefault();t.tagName!==`SELECT`&&t.type!==`range`&&(H.letters||e.key.length!==1||e.key===` `)&&(this.#n?.(e)||this.#a(e,t))&&e.preventDefault()}}}#r(e,t){if(e.key===`Escape`)$.present(!1);else if(e.key===`PageDown`||e.key===`ArrowRight`||e.key===` `&&!t.closest(`button, a, summary`))$.turn(1);else if(e.key===`PageUp`||e.key===`ArrowLeft`)$.turn(-1);else return!1;return!0}#i(e){let t=e.key.toLowerCase();if(t===`z`&&e.shiftKey)R.past.redo();else if(t===`z`)R.past.undo();else if(t===`y`&&!e.shiftKey)R.past.redo();else return!1;return!0}#a(e,t){let n=R.trace?.shape;if(e.key===`?`)this.help=!0;else if(e.key===`Backspace`)return R.unpick();else if(e.code===`BracketRight`&&$.step)$.go(1);else if(e.code===`BracketLeft`&&$.step)$.go(-1);else if(e.key===`e`||e.key===`/`)this.editing=!0;else if(e.key===`n`||e.key===`p`){let t=ft.findIndex(e=>e.name===R.page);R.go(ft[(t+(e.key===`n`?1:ft.length-1))%ft.length].name)}else if(e.key.startsWith(`Arrow`)&&t.tagName!==`INPUT`&&n){let t=e.key===`ArrowRight`||e.key===`ArrowUp`?1:-1,r=e.key===`ArrowRight`||e.key===`ArrowLeft`,i=(e,t)=>Math.max(0,Math.min(t-1,e));if(r&&!e.shiftKey)R.choose(i(R.at+t,R.tokens.length));else if(r)R.head=i(R.atHead+t,n.heads);else if(e.shiftKey)R.layer=i(R.atLayer+t,n.layers);else return!1}else return!1;return!0}},Ot=K(`<li><button><span class="name svelte-1g24gda"> </span> <span class="size svelte-1g24gda"> </span> <span class="shape svelte-1g24gda"><!><!></span></button></li>`),kt=K(`<h2 class="svelte-1g24gda"> </h2> <ul></ul>`,1),At=K(`<p class="here svelte-1g24gda"> </p>`),jt=K(`<form class="svelte-1g24gda"><label class="small" for="other-model"> </label> <div class="other svelte-1g24gda"><input id="other-model" class="field" placeholder="~/models/mine" spellcheck="false" autocomplete="off"/> <button class="button" type="submit"> </button></div></form>`),Mt=K(`<progress class="svelte-1g24gda"></progress> <span> </span>`,1),Nt=K(`<div class="waking svelte-1g24gda" role="status"><span> </span> <!></div>`),Pt=K(`<details class="svelte-1g24gda"><summary class="button svelte-1g24gda"><span class="now svelte-1g24gda"> </span><!></summary> <div class="menu svelte-1g24gda"><div class="lists svelte-1g24gda"><h2 class="svelte-1g24gda"> </h2> <ul></ul> <!></div> <!></div></details> <!>`,1);function Ft(e,t){F(t,!0);let r=(e,t=ae)=>{var r=Ot(),i=l(r);let o;var s=l(i),c=G(s,!0),u=n(s,2),d=G(u,!0),f=n(u,2),h=l(f),_=e=>{var n=U();X(e=>J(n,e),[()=>W(`shell.model_shape`,{layers:t().layers,heads:t().heads,width:t().width,context:t().context})]),V(e,n)};q(h,e=>{t().layers&&t().heads&&e(_)});var v=n(h),y=e=>{var n=U();X(e=>J(n,` · ${e??``}`),[()=>W(`shell.download`,{size:Pe(t().bytes)})]),V(e,n)};q(v,e=>{t().where===`hub`&&t().bytes&&e(y)}),a(f),a(i),a(r),X((e,n)=>{o=P(i,1,`entry svelte-1g24gda`,null,o,{chosen:t().name===B(p)}),C(i,`aria-current`,t().name===B(p)||void 0),C(s,`title`,t().name),J(c,e),J(d,n)},[()=>m(t().name),()=>me(t().parameters)]),Y(`click`,i,()=>g(t().name)),V(e,r)},s,c=A(``),u=f(()=>fe.list.filter(e=>e.where===`here`)),d=f(()=>fe.list.filter(e=>e.where===`hub`)),p=f(()=>R.trace?.model??R.model),m=e=>e.replace(/\/+$/,``).split(`/`).pop()||e;function g(e){e.trim()&&(s.open=!1,s.querySelector(`summary`)?.focus(),R.use(e.trim()))}function _(e){e.key===`Escape`&&s.open&&(s.open=!1,s.querySelector(`summary`)?.focus(),e.stopPropagation())}var v=Pt(),y=M(v),b=l(y),S=l(b),T=G(S,!0),E=n(S);L(E,{get paths(){return i.down},size:14}),a(b);var O=n(b,2),k=l(O),j=l(k),N=G(j,!0),ee=n(j,2);ye(ee,21,()=>B(u),e=>e.name,(e,t)=>{r(e,()=>B(t))}),a(ee);var te=n(ee,2),ne=e=>{var t=kt(),i=M(t),o=G(i,!0),s=n(i,2);ye(s,21,()=>B(d),e=>e.name,(e,t)=>{r(e,()=>B(t))}),a(s),X(e=>J(o,e),[()=>W(`shell.models_hub`)]),V(e,t)};q(te,e=>{B(d).length&&e(ne)}),a(k);var re=n(k,2),I=e=>{var t=At(),n=G(t,!0);X(e=>J(n,e),[()=>W(`site.runs_here`)]),V(e,t)},oe=e=>{var t=jt(),r=l(t),i=G(r,!0),o=n(r,2),s=l(o);h(s);var u=n(s,2),d=G(u,!0);a(o),a(t),X((e,t)=>{J(i,e),J(d,t)},[()=>W(`shell.models_other`),()=>W(`shell.open`)]),Be(`submit`,t,e=>{e.preventDefault(),g(B(c))}),ie(s,()=>B(c),e=>D(c,e)),V(e,t)};q(re,e=>{Ve?e(I):e(oe,-1)}),a(O),a(y),o(y,e=>s=e,()=>s);var se=n(y,2),ce=e=>{let t=f(()=>fe.waking);var r=Nt(),i=l(r),o=G(i,!0),s=n(i,2),c=e=>{var r=Mt(),i=M(r),a=n(i,2),o=G(a,!0);X((e,n)=>{x(i,B(t).done),C(i,`max`,B(t).total),C(i,`aria-label`,e),J(o,n)},[()=>W(`shell.fetching`,{file:B(t).file,size:Pe(B(t).total)}),()=>Fe(B(t).done/B(t).total)]),V(e,r)};q(s,e=>{B(t).total&&B(t).phase===`fetching`&&e(c)}),a(r),X(e=>J(o,e),[()=>B(t).phase===`fetching`&&B(t).total?W(`shell.fetching`,{file:B(t).file,size:Pe(B(t).total)}):W(`shell.waking`,{name:m(B(t).name)})]),V(e,r)};q(se,e=>{fe.waking&&!Ve?.bare&&e(ce)}),X((e,t,n)=>{C(b,`aria-label`,e),J(T,t),J(N,n)},[()=>W(`shell.model`,{name:B(p)}),()=>m(B(p)),()=>W(`shell.models_here`)]),Y(`keydown`,y,_),Be(`toggle`,y,()=>s.open&&void fe.refresh().catch(()=>void 0)),Y(`focusout`,y,e=>e.relatedTarget&&!s.contains(e.relatedTarget)&&(s.open=!1)),V(e,v),w()}z([`click`,`keydown`,`focusout`]);var It=K(`<label class="hidden" for="text-field"> </label> <textarea id="text-field" spellcheck="false" class="svelte-zzct20"></textarea>`,1),Lt=K(`<span class="quiet small nothing svelte-zzct20"> </span>`),Rt=K(`<p class="uncut svelte-zzct20"> </p>`),zt=K(`<button class="button strong svelte-zzct20"> </button>`),Bt=K(`<button class="button svelte-zzct20"><!> </button>`),Vt=K(`<div><!> <div class="line svelte-zzct20"><div class="chips svelte-zzct20"><!> <!></div> <div class="side svelte-zzct20"><!> <p class="count svelte-zzct20" aria-live="polite"><!></p></div></div></div>`);function Ht(e,t){F(t,!0);let r=A(void 0),s=A(void 0),c=A(void 0),u=A(``),d=f(()=>R.trace?.shape.context??0),p=f(()=>!R.text&&!R.more.length),m=f(()=>ft.find(e=>e.name===R.page)?.uncut??!1);I(()=>{Dt.editing&&(D(u,ne(()=>R.more.length&&R.trace?R.trace.text:R.text),!0),ze().then(()=>{B(r)?.focus(),B(r)?.setSelectionRange(B(u).length,B(u).length)}))}),I(()=>{if(R.at,R.trace,!B(c))return;let e=B(c);return v(()=>{let t=e.querySelector(`[aria-pressed=true]`);if(!t||e.scrollHeight<=e.clientHeight)return;let n=t.offsetHeight+3;e.scrollTop=Math.max(0,Math.ceil((t.offsetTop-e.clientHeight/2)/n)*n)})});function h(){Dt.editing=!1,ze().then(()=>B(s)?.focus())}function g(e){(e.key===`Escape`||e.key===`Enter`&&!e.shiftKey&&!e.isComposing)&&(e.preventDefault(),h())}var _=Vt();let b;var x=l(_),S=e=>{var t=It(),i=M(t),a=G(i,!0),s=n(i,2);y(s),o(s,e=>D(r,e),()=>B(r)),X((e,t,n)=>{J(a,e),C(s,`rows`,t),C(s,`placeholder`,n)},[()=>W(`shell.text`),()=>Math.min(6,Math.max(1,Math.ceil(B(u).length/80),B(u).split(`
`).length)),()=>W(`shell.write_here`)]),Y(`input`,s,()=>R.write(B(u))),Y(`keydown`,s,g),ie(s,()=>B(u),e=>D(u,e)),V(e,t)};q(x,e=>{Dt.editing&&e(S)});var T=n(x,2),E=l(T),O=l(E),k=e=>{var t=Lt(),n=G(t,!0);X(e=>J(n,e),[()=>W(`shell.nothing`)]),V(e,t)};q(O,e=>{B(p)&&e(k)});var j=n(O,2),N=e=>{var t=Rt(),n=G(t,!0);X(()=>J(n,R.text)),V(e,t)},ee=e=>{{let t=f(()=>R.trace?R.tokens:R.cut),n=f(()=>R.tokens.length-R.more.length),r=f(()=>W(`shell.tokens`)),i=f(()=>We?Ke.all:null);He(e,{get tokens(){return B(t)},get chosen(){return R.at},get picked(){return B(n)},get label(){return B(r)},get marks(){return B(i)},onchoose:e=>R.choose(e)})}};q(j,e=>{B(m)?e(N):e(ee,-1)}),a(E),o(E,e=>D(c,e),()=>B(c));var te=n(E,2),re=l(te),ae=e=>{var t=zt(),n=G(t,!0);X(e=>J(n,e),[()=>W(`shell.done`)]),Y(`click`,t,h),V(e,t)},oe=e=>{var t=Bt(),r=l(t);L(r,{get paths(){return i.edit},size:15});var c=n(r,1,!0);a(t),o(t,e=>D(s,e),()=>B(s)),X(e=>J(c,e),[()=>W(`shell.write`)]),Y(`click`,t,()=>Dt.editing=!0),V(e,t)};q(re,e=>{Dt.editing?e(ae):e(oe,-1)});var se=n(re,2),ce=l(se),le=e=>{var t=U();X(e=>J(t,e),[()=>W(`shell.token_count`,{count:R.tokens.length,context:B(d)})]),V(e,t)};q(ce,e=>{R.trace&&!B(m)&&e(le)}),a(se),a(te),a(T),a(_),X(()=>b=P(_,1,`textbox svelte-zzct20`,null,b,{editing:Dt.editing})),V(e,_),w()}z([`input`,`keydown`,`click`]);var Ut=K(`<div class="model svelte-io3w3x"><!></div> <div class="text svelte-io3w3x" data-tour="text"><!></div>`,1),Wt=K(`<button> </button>`),Gt=K(`<header class="svelte-io3w3x"><div class="brand svelte-io3w3x"><svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true"><rect x="3" y="19" width="26" height="8" rx="2" fill="var(--accent)"></rect><rect x="3" y="9" width="18" height="8" rx="2" fill="var(--accent)" opacity=".5"></rect><path d="M24.5 5v11" stroke="var(--attention)" stroke-width="3" stroke-linecap="round"></path></svg> <span>Cutaway</span></div> <!> <div class="reader svelte-io3w3x"><div class="languages svelte-io3w3x" role="group"></div> <button class="round svelte-io3w3x"><!></button> <button class="round svelte-io3w3x"><!></button></div></header>`);function Kt(e,t){F(t,!0);let r=[`auto`,`light`,`dark`],o={en:`EN`,"zh-Hans":`中`,ru:`RU`},s=f(()=>r[(r.indexOf(H.theme)+1)%3]);var c=Gt(),u=n(l(c),2),d=e=>{var t=Ut(),r=M(t);Ft(l(r),{}),a(r);var i=n(r,2);Ht(l(i),{}),a(i),V(e,t)};q(u,e=>{R.beside||e(d)});var p=n(u,2),m=l(p);ye(m,21,()=>Object.entries(_e),([e,t])=>e,(e,t)=>{var n=f(()=>_(B(t),2));let r=()=>B(n)[0],i=()=>B(n)[1];var a=Wt();let s;var c=G(a,!0);X(()=>{C(a,`lang`,r()),C(a,`title`,i()),C(a,`aria-label`,`${o[r()]??``} ${i()??``}`),C(a,`aria-pressed`,H.language===r()),s=P(a,1,`svelte-io3w3x`,null,s,{chosen:H.language===r()}),J(c,o[r()])}),Y(`click`,a,()=>H.speak(r())),V(e,a)}),a(m);var h=n(m,2),g=l(h);L(g,{get paths(){return i[H.theme]}}),a(h);var v=n(h,2),y=l(v);L(y,{get paths(){return i.help}}),a(v),a(p),a(c),X((e,t,n,r,i)=>{C(m,`aria-label`,e),C(h,`aria-label`,t),C(h,`title`,n),C(v,`aria-label`,r),C(v,`title`,i)},[()=>W(`shell.language`),()=>W(`shell.theme`,{theme:W(`shell.theme_${H.theme}`)}),()=>W(`shell.theme`,{theme:W(`shell.theme_${H.theme}`)}),()=>W(`shell.shortcuts`),()=>W(`shell.shortcuts`)]),Y(`click`,h,()=>H.wear(B(s))),Y(`click`,v,()=>Dt.help=!0),V(e,c),w()}z([`click`]);var qt=K(`<div class="lost svelte-19hmz3y" role="alert"><div><strong class="svelte-19hmz3y"> </strong> <p> </p></div> <button class="button"> </button></div>`);function Jt(e,t){F(t,!1),T();var r=ge(),i=M(r),o=e=>{var t=qt(),r=l(t),i=l(r),o=G(i,!0),s=n(i,2),c=G(s,!0);a(r);var u=n(r,2),d=G(u,!0);a(t),X((e,t,n)=>{J(o,e),J(c,t),J(d,n)},[()=>W(`shell.lost`),()=>W(`shell.lost_remedy`),()=>W(`shell.retry`)]),Y(`click`,u,()=>Re.retry()),V(e,t)};q(i,e=>{Re.lost&&e(o)}),V(e,r),w()}z([`click`]);var Yt=K(`<li><a><!> <span> </span></a></li>`),Xt=K(`<li><button><!> <span> </span></button></li>`),Zt=K(`<nav class="svelte-16yv1nr"><ul class="svelte-16yv1nr"><!> <li class="tour svelte-16yv1nr"><a><!> <span> </span></a></li> <!> <li><button class="svelte-16yv1nr"><!> <span> </span></button></li></ul></nav>`);function Qt(e,t){F(t,!0);let r=e=>j({...R.place(),page:e,settings:R.settings[e]??{}}),s=e=>!!R.trace&&!k(R.trace.map,e.views);function c(e,t){e.ctrlKey||e.metaKey||e.shiftKey||e.button||(e.preventDefault(),R.go(t))}let u;I(()=>(R.page,v(()=>{let e=u.querySelector(`[aria-current=page]`);e&&u.scrollWidth>u.clientWidth&&(u.scrollLeft=e.offsetLeft-(u.clientWidth-e.offsetWidth)/2)})));var d=Zt(),f=l(d),p=l(f);ye(p,17,()=>ft,e=>e.name,(e,t)=>{var i=Yt(),o=l(i);let u;var d=l(o);L(d,{get paths(){return B(t).icon}});var f=n(d,2),p=G(f,!0);a(o),a(i),X((e,n,r,i)=>{C(o,`href`,e),C(o,`title`,n),C(o,`aria-current`,B(t).name===R.page?`page`:void 0),u=P(o,1,`svelte-16yv1nr`,null,u,{unfit:r}),J(p,i)},[()=>r(B(t).name),()=>s(B(t))?W(`shell.unfit`):void 0,()=>s(B(t)),()=>W(`${B(t).name}.name`)]),Y(`click`,o,e=>c(e,B(t).name)),V(e,i)});var m=n(p,2),h=l(m);let g;var _=l(h);L(_,{get paths(){return i.tour}});var y=n(_,2),b=G(y,!0);a(h),a(m);var x=n(m,2),S=e=>{var t=Xt(),r=l(t);let o;var s=l(r);L(s,{get paths(){return i.sides}});var c=n(s,2),u=G(c,!0);a(r),a(t),X(e=>{C(r,`aria-pressed`,!!R.beside),o=P(r,1,`svelte-16yv1nr`,null,o,{chosen:R.beside}),J(u,e)},[()=>W(`beside.name`)]),Y(`click`,r,()=>R.beside?Z.end():Z.begin()),V(e,t)};q(x,e=>{Ve||e(S)});var T=n(x,2),E=l(T),D=l(E);L(D,{get paths(){return i.present}});var O=n(D,2),A=G(O,!0);a(E),a(T),a(f),a(d),o(d,e=>u=e,()=>u),X((e,t,n)=>{C(d,`aria-label`,e),C(h,`href`,$.entrance),g=P(h,1,`svelte-16yv1nr`,null,g,{chosen:$.step}),J(b,t),J(A,n)},[()=>W(`shell.pages`),()=>W(`tour.name`),()=>W(`classroom.present`)]),Y(`click`,E,()=>$.present(!0)),V(e,d),w()}z([`click`]);var $t=K(`<dt><kbd> </kbd></dt> <dd> </dd>`,1),en=K(`<dialog aria-labelledby="shortcuts-title" class="svelte-1xuj7gt"><div class="inside svelte-1xuj7gt"><header class="svelte-1xuj7gt"><h2 id="shortcuts-title"> </h2> <button class="close svelte-1xuj7gt"><!></button></header> <dl class="svelte-1xuj7gt"><!> <!></dl> <label class="letters svelte-1xuj7gt"><input type="checkbox" role="switch" aria-describedby="letters-say" class="svelte-1xuj7gt"/> </label> <p id="letters-say" class="quiet small svelte-1xuj7gt"> </p></div></dialog>`);function tn(e,t){F(t,!0);let r,s=/^(Mac|iP)/.test(navigator.platform)?`⌘`:`Ctrl`,c=[[`e`,`edit`],[`← →`,`position`],[`⇧ ← →`,`head`],[`⇧ ↑ ↓`,`layer`],[`n  p`,`page`],[`[  ]`,`tour`],[`${s} Z`,`undo`],[`${s} ⇧ Z`,`redo`],[`⌫`,`unpick`],[`?`,`help`]],u=e=>/^[^←⇧⌫\s](\s|$)/.test(e);I(()=>{Dt.help&&!r.open&&r.showModal()});var d=en(),p=l(d),m=l(p),g=l(m),v=G(g,!0),y=n(g,2),b=l(y);L(b,{get paths(){return i.close}}),a(y),a(m);var x=n(m,2),S=l(x);ye(S,17,()=>c,([e,t])=>e,(e,t)=>{var r=f(()=>_(B(t),2));let i=()=>B(r)[0],o=()=>B(r)[1];var s=$t(),c=M(s),d=l(c);let p;var m=G(d,!0);a(c);var h=n(c,2),g=G(h,!0);X((e,t)=>{p=P(d,1,`svelte-1xuj7gt`,null,p,{off:e}),J(m,i()),J(g,t)},[()=>u(i())&&!H.letters,()=>W(`shell.key_${o()}`)]),V(e,s)});var T=n(S,2),E=e=>{var t=$t(),r=M(t),i=l(r);let o;var s=G(i,!0);a(r);var c=n(r,2),d=G(c,!0);X((e,t,n)=>{o=P(i,1,`svelte-1xuj7gt`,null,o,{off:e}),J(s,t),J(d,n)},[()=>u(W(`${R.page}.keys`))&&!H.letters,()=>W(`${R.page}.keys`),()=>W(`${R.page}.keys_do`)]),V(e,t)},D=f(()=>he(`${R.page}.keys`));q(T,e=>{B(D)&&e(E)}),a(x);var O=n(x,2),k=l(O);h(k);var A=n(k);a(O);var j=n(O,2),N=G(j,!0);a(p),a(d),o(d,e=>r=e,()=>r),X((e,t,n,r)=>{J(v,e),C(y,`aria-label`,t),Me(k,H.letters),J(A,` ${n??``}`),J(N,r)},[()=>W(`shell.shortcuts`),()=>W(`shell.close`),()=>W(`shell.letters`),()=>W(`shell.letters_say`)]),Be(`close`,d,()=>Dt.help=!1),Y(`click`,d,e=>e.target===r&&r.close()),Y(`click`,y,()=>r.close()),Y(`change`,k,e=>H.useLetters(e.currentTarget.checked)),V(e,d),w()}z([`click`,`change`]);var nn=K(`<div class="working svelte-j5ztg1"><progress max="1" class="svelte-j5ztg1"></progress> <span> </span> <button class="button"> </button></div>`);function rn(e,t){F(t,!0),I(()=>xe.watch());let r=f(()=>xe.now?.share??null),i=f(()=>B(r)===null?`…`:Fe(Math.round(B(r)*100)/100).replace(/[.,]0(?=\D)/,``));var o=ge(),s=M(o),u=e=>{var t=nn(),o=l(t),s=n(o,2),u=G(s,!0),d=n(s,2),f=G(d,!0);a(t),X((e,t,n)=>{x(o,B(r)??void 0),C(o,`aria-label`,e),J(u,t),J(f,n)},[()=>W(`shell.working`,{share:B(i)}),()=>xe.left===null?W(`shell.working`,{share:B(i)}):W(`shell.working_left`,{share:B(i),seconds:xe.left}),()=>W(`shell.cancel`)]),Y(`click`,d,function(...e){c?.apply(this,e)}),V(e,t)};q(s,e=>{xe.now&&e(u)}),V(e,o),w()}z([`click`]);var an=K(`<aside data-tour="details"><h2 class="svelte-1ic85nn"> </h2> <button class="sheet svelte-1ic85nn"> <!></button> <div class="inside svelte-1ic85nn"><!></div></aside>`),on=K(`<!> <span class="word mono svelte-1ic85nn" aria-hidden="true"> </span>`,1),sn=K(`<div class="turns svelte-1ic85nn" role="group"><!> <!> <!></div>`),cn=K(`<div><div class="head svelte-1ic85nn"><div class="words svelte-1ic85nn"><h1 tabindex="-1" id="page-title" class="svelte-1ic85nn"> </h1> <p class="quiet sentence svelte-1ic85nn"><!></p></div> <div class="tools svelte-1ic85nn"><!></div></div> <!> <div data-tour="picture"><!> <!></div> <div class="dock svelte-1ic85nn"><!> <!></div></div>`);function ln(e,t){F(t,!0);let r=p(t,`turns`,19,()=>[]),o=p(t,`detailsTitle`,3,``),s=p(t,`busy`,3,!1),c=p(t,`failure`,3,null),u=A(!1),d=f(()=>R.trace?.shape),m=f(()=>r().filter(e=>e===`layer`?R.trace?.map.layers:e!==`head`||R.trace?.map.places.some(e=>e.axes[0]===`head`)));var h=cn();let g;var _=l(h),v=l(_),y=l(v),b=G(y,!0),x=n(y,2),S=l(x);Ne(S,()=>t.sentence),a(x),a(v);var T=n(v,2),O=l(T);Ne(O,()=>t.tools??ae),a(T),a(_);var k=n(_,2),j=e=>{rn(e,{})};q(k,e=>{(s()||R.busy)&&!fe.waking&&e(j)});var N=n(k,2);let ee;var te=l(N),ne=e=>{oe(e,{get failure(){return c()},retry:()=>R.again()})};q(te,e=>{c()&&e(ne)});var re=n(te,2);Ne(re,()=>t.children),a(N);var I=n(N,2),ie=l(I),se=e=>{var r=an();let s;var c=l(r),d=G(c,!0),f=n(c,2),p=l(f,!0),m=n(p);L(m,{get paths(){return i[B(u)?`down`:`up`]},size:16}),a(f);var h=n(f,2),g=l(h);Ne(g,()=>t.details),a(h),a(r),X((e,t,n)=>{C(r,`aria-label`,e),s=P(r,1,`svelte-1ic85nn`,null,s,{open:B(u)}),J(d,t),C(f,`aria-expanded`,B(u)),J(p,n)},[()=>o()||W(`shell.details`),()=>o()||W(`shell.details`),()=>o()||W(`shell.details`)]),Y(`click`,f,()=>D(u,!B(u))),V(e,r)};q(ie,e=>{t.details&&e(se)});var ce=n(ie,2),le=e=>{var t=sn(),r=l(t),i=e=>{{let t=f(()=>W(`shell.layer`)),n=f(()=>B(d).layers-1),r=f(()=>`${R.atLayer}`);E(e,{compact:!0,get label(){return B(t)},min:0,get max(){return B(n)},get value(){return R.atLayer},get shown(){return B(r)},onchange:e=>R.layer=e})}},o=f(()=>B(m).includes(`layer`));q(r,e=>{B(o)&&e(i)});var s=n(r,2),c=e=>{{let t=f(()=>W(`shell.head`)),n=f(()=>B(d).heads-1),r=f(()=>`${R.atHead}`);E(e,{compact:!0,get label(){return B(t)},min:0,get max(){return B(n)},get value(){return R.atHead},get shown(){return B(r)},onchange:e=>R.head=e})}},u=f(()=>B(m).includes(`head`));q(s,e=>{B(u)&&e(c)});var p=n(s,2),h=e=>{var t=on(),r=M(t);{let e=f(()=>W(`shell.position`)),t=f(()=>R.tokens.length-1),n=f(()=>`${R.at}`);E(r,{compact:!0,get label(){return B(e)},min:0,get max(){return B(t)},get value(){return R.at},get shown(){return B(n)},onchange:e=>R.choose(e)})}var i=n(r,2),a=G(i,!0);X(e=>J(a,e),[()=>R.tokens[R.at]?De(R.tokens[R.at]):``]),V(e,t)},g=f(()=>B(m).includes(`position`));q(p,e=>{B(g)&&e(h)}),a(t),X(e=>C(t,`aria-label`,e),[()=>W(`shell.moment`)]),V(e,t)};q(ce,e=>{B(m).length&&B(d)&&e(le)}),a(I),a(h),X(()=>{g=P(h,1,`frame svelte-1ic85nn`,null,g,{alone:!t.details}),J(b,t.title),ee=P(N,1,`picture svelte-1ic85nn`,null,ee,{busy:s()||R.busy}),C(N,`aria-busy`,s()||R.busy)}),V(e,h),w()}z([`click`]);var un=K(`<button class="button strong"> </button>`),dn=K(`<div class="unfit boxed svelte-ebxx0m"><p><!></p> <!> <button><!></button></div>`);function fn(e,t){F(t,!0);let r=f(()=>!!R.trace&&k(R.trace.map,[`translation`])),i=f(()=>t.page.included?.models.filter(e=>fe.list.some(t=>t.name===e))??[]);function o(e){t.page.included&&(R.untouched||!R.text.trim())&&R.write(t.page.included.text),R.use(e)}{let s=e=>{Ue();var t=U();X(e=>J(t,e),[()=>W(`shell.unfit`)]),V(e,t)},c=f(()=>W(`${t.page.name}.title`));ln(e,{get title(){return B(c)},sentence:s,children:(e,s)=>{var c=dn(),u=l(c),d=l(u),f=e=>{var n=U();X(e=>J(n,e),[()=>W(`${t.page.name}.remedy`)]),V(e,n)},p=e=>{var t=U();X(e=>J(t,e),[()=>W(`shell.unfit_pair`,{model:R.trace?.model??``})]),V(e,t)},m=e=>{var t=U();X(e=>J(t,e),[()=>W(`shell.unfit_why`,{model:R.trace?.model??``,title:R.trace?.map.title??``})]),V(e,t)};q(d,e=>{t.page.remedy?e(f):B(r)?e(p,1):e(m,-1)}),a(u);var h=n(u,2);ye(h,16,()=>B(i),e=>e,(e,t)=>{var n=un(),r=G(n,!0);X(e=>{C(n,`data-take`,t),J(r,e)},[()=>W(`shell.take_${t}`)]),Y(`click`,n,()=>o(t)),V(e,n)});var g=n(h,2);let _;var v=l(g),y=e=>{var t=U();X(e=>J(t,e),[()=>W(`shell.unfit_pair_go`)]),V(e,t)},b=e=>{var t=U();X(e=>J(t,e),[()=>W(`shell.unfit_go`)]),V(e,t)};q(v,e=>{B(r)?e(y):e(b,-1)}),a(g),a(c),X(()=>{C(c,`data-unfit`,t.page.name),_=P(g,1,`button`,null,_,{strong:!B(i).length})}),Y(`click`,g,()=>R.go(B(r)?`translator`:`walk`)),V(e,c)},$$slots:{sentence:!0,default:!0}})}w()}z([`click`]);var pn=K(`<div class="next svelte-tlpirs" role="status"><progress max="1" class="svelte-tlpirs"></progress> <span> <!></span></div>`),mn=K(`<button class="word svelte-tlpirs"><span class="token svelte-tlpirs"> </span> </button>`),hn=K(`<div class="next svelte-tlpirs" role="group"><span> </span> <!></div>`),gn=K(`<button class="example svelte-tlpirs" lang="en"> </button>`),_n=K(`<li><a class="way boxed svelte-tlpirs"><strong class="svelte-tlpirs"> </strong><span> </span></a></li>`),vn=K(`<section class="welcome svelte-tlpirs" aria-labelledby="welcome-title"><button class="close svelte-tlpirs"><!></button> <h2 id="welcome-title" class="svelte-tlpirs"> </h2> <p class="says svelte-tlpirs"> </p> <div class="write svelte-tlpirs"><label for="welcome-text" class="svelte-tlpirs"> </label> <input id="welcome-text" class="field svelte-tlpirs" autocomplete="off" spellcheck="false"/> <!> <p class="examples svelte-tlpirs"></p></div> <ul class="ways svelte-tlpirs"><li><a class="way boxed svelte-tlpirs"><strong class="svelte-tlpirs"> </strong><span> </span></a></li> <li><a class="way boxed svelte-tlpirs"><strong class="svelte-tlpirs"> </strong><span> </span></a></li> <li><a class="way boxed svelte-tlpirs"><strong class="svelte-tlpirs"> </strong><span> </span></a></li> <!></ul></section>`);function yn(e,t){F(t,!0);let r=[`A robot must obey the orders given it`,`One day, Tom lost his`,`one two three one two three one`],o=e=>j({...R.place(),page:e,step:``,tour:``,settings:{}}),s=e=>{let t=O(e,R.place());return`${W(`${t.page}.name`)}: ${t.text}`},c=f(()=>fe.waking),u=ce(()=>({view:`predict`,query:{position:-1}})),d=f(()=>(u.value?.tokens??[]).slice(0,4).map((e,t)=>({token:e,share:u.value.own[t]})).filter(e=>e.token.text));var p=vn(),m=l(p),g=l(m);L(g,{get paths(){return i.close},size:16}),a(m);var _=n(m,2),v=G(_,!0),y=n(_,2),b=G(y,!0),S=n(y,2),T=l(S),E=G(T,!0),D=n(T,2);h(D);var k=n(D,2),A=e=>{var t=pn(),r=l(t),i=n(r,2),o=l(i,!0),s=n(o),u=e=>{var t=U();X(e=>J(t,` ${e??``}`),[()=>Fe(B(c).done/B(c).total)]),V(e,t)};q(s,e=>{B(c).total&&e(u)}),a(i),a(t),X((e,t)=>{x(r,B(c).total?B(c).done/B(c).total:void 0),C(r,`aria-label`,e),J(o,t)},[()=>W(`site.loading`,{size:Pe(Ve.bytes)}),()=>W(`site.loading`,{size:Pe(Ve.bytes)})]),V(e,t)},M=e=>{var t=hn(),r=l(t),i=G(r,!0),o=n(r,2);ye(o,17,()=>B(d),({token:e,share:t})=>e.id,(e,t)=>{let r=()=>B(t).token,i=()=>B(t).share;var o=mn(),s=l(o),c=G(s,!0),u=n(s);a(o),X((e,t)=>{J(c,e),J(u,` ${t??``}`)},[()=>De(r()),()=>Fe(i())]),Y(`click`,o,()=>R.write(R.text+r().text)),V(e,o)}),a(t),X((e,n)=>{C(t,`aria-label`,e),J(i,n)},[()=>W(`site.next`),()=>W(`site.next`)]),V(e,t)};q(k,e=>{B(c)&&!R.trace?e(A):e(M,-1)});var N=n(k,2);ye(N,20,()=>r,e=>e,(e,t)=>{var n=gn(),r=G(n);X(()=>{C(n,`aria-pressed`,R.text===t),J(r,`${t??``} …`)}),Y(`click`,n,()=>R.write(t)),V(e,n)}),a(N),a(S);var ee=n(S,2),te=l(ee),P=l(te),ne=l(P),re=G(ne,!0),I=n(ne),ie=G(I,!0);a(P),a(te);var ae=n(te,2),oe=l(ae),se=l(oe),le=G(se,!0),z=n(se),ue=G(z,!0);a(oe),a(ae);var de=n(ae,2),pe=l(de),me=l(pe),he=G(me,!0),ge=n(me),H=G(ge,!0);a(pe),a(de);var _e=n(de,2);ye(_e,17,()=>Ve.moments,e=>e.address,(e,r)=>{var i=_n(),o=l(i),c=l(o),u=G(c,!0),d=n(c),f=G(d,!0);a(o),a(i),X((e,t)=>{C(o,`href`,B(r).address),J(u,e),J(f,t)},[()=>B(r).title||s(B(r).address),()=>W(`site.moment`)]),Y(`click`,o,function(...e){t.onclose?.apply(this,e)}),V(e,i)}),a(ee),a(p),X((e,t,n,r,i,a,o,s,c,l,u,d,f)=>{C(m,`aria-label`,e),C(m,`title`,t),J(v,n),J(b,r),J(E,i),x(D,R.text),C(P,`href`,$.entrance),J(re,a),J(ie,o),C(oe,`href`,s),J(le,c),J(ue,l),C(pe,`href`,u),J(he,d),J(H,f)},[()=>W(`site.close`),()=>W(`site.close`),()=>W(`site.title`),()=>W(`site.says`,{size:Pe(Ve.bytes)}),()=>W(`site.write`),()=>W(`site.tour`),()=>W(`site.tour_says`,{n:xt.length}),()=>o(`walk`),()=>W(`site.walk`),()=>W(`site.walk_says`),()=>o(`gallery`),()=>W(`site.gallery`),()=>W(`site.gallery_says`)]),Y(`click`,m,function(...e){t.onclose?.apply(this,e)}),Y(`input`,D,e=>R.write(e.currentTarget.value)),Y(`click`,oe,function(...e){t.onclose?.apply(this,e)}),Y(`click`,pe,function(...e){t.onclose?.apply(this,e)}),V(e,p),w()}z([`click`,`input`]);var bn=K(` <!>`,1),xn=K(`<data> </data>`);function Sn(e,t){F(t,!0);var r=ge(),i=M(r);ye(i,17,()=>_t(t.sentence,t.facts,H.language),de,(e,t)=>{var r=ge(),i=M(r),a=e=>{var n=U();X(()=>J(n,B(t))),V(e,n)},o=e=>{var r=ge(),i=M(r);ye(i,17,()=>B(t).tokens,de,(e,t,r)=>{Ue();var i=bn(),a=M(i,!0);a.nodeValue=r?` `:``;var o=n(a);je(o,{get token(){return B(t)}}),V(e,i)}),V(e,r)},s=e=>{var n=xn(),r=G(n,!0);X(()=>{x(n,B(t).value),J(r,B(t).text)}),V(e,n)};q(i,e=>{typeof B(t)==`string`?e(a):`tokens`in B(t)?e(o,1):e(s,-1)}),V(e,r)}),V(e,r),w()}var Cn=K(`<span aria-hidden="true">✓</span><span class="hidden"> </span>`,1),wn=K(`<span aria-hidden="true">✗</span>`),Tn=K(`<button><!> </button>`),En=K(`<div class="options svelte-1ck2o6b" role="group"></div>`),Dn=K(`<span>%</span>`),On=K(`<input class="field svelte-1ck2o6b" type="number" step="any"/><!>`,1),kn=K(`<input class="field svelte-1ck2o6b" type="text" autocomplete="off"/>`),An=K(`<form class="svelte-1ck2o6b"><!> <button class="button strong"> </button></form>`),jn=K(`<button class="plain small svelte-1ck2o6b"> </button>`),Mn=K(`<data class="svelte-1ck2o6b"> </data>`),Nn=K(`<!> <!>`,1),Pn=K(`<div class="ask svelte-1ck2o6b"><p class="question svelte-1ck2o6b"><!></p> <!> <!> <p tabindex="-1" aria-live="polite"><!></p></div>`);function Fn(e,t){let r=ve();F(t,!0);let i=f(()=>$.facts(t.step)??{}),s=f(()=>$.guess(t.step)),c=f(()=>$.answer(t.step)),u=f(()=>t.ask.answer?pt(B(i),t.ask.answer):void 0),d=A(``),p=f(()=>B(u)?.as===`percent`||B(u)?.as===`count`||B(u)?.as===`number`),m=e=>e.trim().toLowerCase(),g=A(void 0);function _(e){$.make(t.step,e),ze().then(()=>B(g)?.focus({preventScroll:!0}))}function v(e){e.preventDefault(),_(String(B(d)))}let y=f(()=>B(s)===null||B(c)===null?``:B(s)===``?`shown`:t.ask.options?B(s)===B(c)?`right`:`wrong`:B(p)?Math.abs(Number(B(s))/(B(u)?.as===`percent`?100:1)-B(u)?.value)<=(B(u)?.as===`percent`?.05:.1*Math.abs(B(u)?.value))?`near`:`wrong`:m(B(s))===m(B(c))?`right`:`wrong`);var b=Pn(),S=l(b),T=l(S);{let e=f(()=>t.say(t.ask.question));Sn(T,{get sentence(){return B(e)},get facts(){return B(i)}})}a(S);var E=n(S,2),O=e=>{var i=En();ye(i,21,()=>t.ask.options,de,(e,r,i)=>{let o=f(()=>String(i+1));var u=Tn();let d;var p=l(u),m=e=>{var t=Cn(),r=n(M(t)),i=G(r,!0);X(e=>J(i,e),[()=>W(`classroom.right`)]),V(e,t)},h=e=>{var t=wn();V(e,t)};q(p,e=>{B(s)!==null&&B(o)===B(c)?e(m):B(s)===B(o)&&e(h,1)});var g=n(p);a(u),X(e=>{d=P(u,1,`button option svelte-1ck2o6b`,null,d,{right:B(s)!==null&&B(o)===B(c),wrong:B(s)===B(o)&&B(o)!==B(c)}),C(u,`aria-pressed`,B(s)===B(o)),u.disabled=B(s)!==null,J(g,` ${e??``}`)},[()=>t.say(B(r))]),Y(`click`,u,()=>_(B(o))),V(e,u)}),a(i),X(()=>C(i,`aria-labelledby`,`${r}-question`)),V(e,i)},k=e=>{var t=An(),i=l(t),o=e=>{var t=On(),i=M(t);h(i);var a=n(i),o=e=>{var t=Dn();V(e,t)};q(a,e=>{B(u)?.as===`percent`&&e(o)}),X(()=>C(i,`aria-labelledby`,`${r}-question`)),ie(i,()=>B(d),e=>D(d,e)),V(e,t)},s=e=>{var t=kn();h(t),X(()=>C(t,`aria-labelledby`,`${r}-question`)),ie(t,()=>B(d),e=>D(d,e)),V(e,t)};q(i,e=>{B(p)?e(o):e(s,-1)});var c=n(i,2),f=G(c,!0);a(t),X((e,t)=>{c.disabled=e,J(f,t)},[()=>String(B(d)??``).trim()===``,()=>W(`classroom.guess`)]),Be(`submit`,t,v),V(e,t)};q(E,e=>{t.ask.options?e(O):B(s)===null&&e(k,1)});var j=n(E,2),N=e=>{var t=jn(),n=G(t,!0);X(e=>J(n,e),[()=>W(`classroom.reveal`)]),Y(`click`,t,()=>_(``)),V(e,t)};q(j,e=>{B(s)===null&&e(N)});var ee=n(j,2);let te;var ne=l(ee),re=e=>{var r=Nn(),i=M(r),a=e=>{var t=U();X(e=>J(t,e),[()=>W(`classroom.verdict_${B(y)}`)]),V(e,t)};q(i,e=>{B(y)!==`shown`&&e(a)});var o=n(i,2),l=e=>{var t=Nn(),r=M(t),i=e=>{var t=U();X(e=>J(t,e),[()=>W(`classroom.guessed`,{guess:B(u).as===`percent`?`${B(s)} %`:B(s)})]),V(e,t)};q(r,e=>{B(s)&&e(i)});var a=n(r),o=n(a),l=e=>{var t=ge(),n=M(t);ye(n,17,()=>B(u).value,de,(e,t)=>{je(e,{get token(){return B(t)}})}),V(e,t)},d=e=>{var t=Mn(),n=G(t,!0);X(()=>{x(t,B(u).value),J(n,B(c))}),V(e,t)};q(o,e=>{B(u).as===`tokens`?e(l):e(d,-1)}),X(e=>J(a,` ${e??``} `),[()=>W(`classroom.it_is`)]),V(e,t)};q(o,e=>{t.ask.answer&&B(u)&&e(l)}),V(e,r)};q(ne,e=>{B(y)&&e(re)}),a(ee),o(ee,e=>D(g,e),()=>B(g)),a(b),X(()=>{C(b,`data-verdict`,B(y)||void 0),C(S,`id`,`${r}-question`),te=P(ee,1,`verdict svelte-1ck2o6b`,null,te,{kept:B(s)===null})}),V(e,b),w()}z([`click`]);var In=1500,Ln=e=>{let t=e.closest(`.dock`);return!!t&&getComputedStyle(t).position===`sticky`};function Rn(e,{point:t,page:n},r){let i=null,a=!0,o=()=>{if(!i||Ln(i))return;let{top:t,bottom:n,height:r}=i.getBoundingClientRect(),a=e.getBoundingClientRect().bottom,o=[...document.querySelectorAll(`.dock, .turns`)].map(e=>e.getBoundingClientRect().height),s=Math.max(0,...o);document.documentElement.style.setProperty(`--dock`,`${s}px`);let c=innerHeight-s,l=r+24<=c-a,u=r<=1.25*(c-a),d=l||u?n>c&&t>a+24:t>innerHeight*.6;t<a?i.scrollIntoView({block:`start`,behavior:`instant`}):d&&i.scrollIntoView({block:l?`end`:`start`,behavior:`instant`})},s=()=>{let e=R.page===n?document.querySelector(`[data-tour="${t}"]`):null;e!==i&&(i?.removeAttribute(`data-toured`),i=e,i?.setAttribute(`data-toured`,``)),a&&o()},c=e=>{a=e?.target instanceof Element&&!!e.target.closest(`.again`),a&&(clearTimeout(l),l=setTimeout(u,In),requestAnimationFrame(o))},l=setTimeout(u,In);function u(){document.querySelector(`.picture[aria-busy=true]`)||r()?l=setTimeout(u,In):c()}let d=[`wheel`,`pointerdown`,`keydown`];for(let e of d)addEventListener(e,c,{passive:!0});let f=new MutationObserver(s);f.observe(document.body,{childList:!0,subtree:!0});let p=new ResizeObserver(()=>{document.documentElement.style.setProperty(`--guide`,`${e.offsetHeight}px`),a&&o()});return p.observe(e),document.documentElement.style.setProperty(`--guide`,`${e.offsetHeight}px`),s(),()=>{f.disconnect(),p.disconnect(),clearTimeout(l);for(let e of d)removeEventListener(e,c);i?.removeAttribute(`data-toured`)}}var zn=K(`<p> </p>`),Bn=K(`<p class="here svelte-p79hai" aria-live="polite"><!></p>`),Vn=K(`<p class="try svelte-p79hai"><strong class="svelte-p79hai"> </strong> </p>`),Hn=K(`<a class="button svelte-p79hai"><!> </a>`),Un=K(`<a class="button strong svelte-p79hai"> <!></a>`),Wn=K(`<button class="button strong"> </button>`),Gn=K(`<div class="ways svelte-p79hai"><!> <!> <button class="button"><!> </button> <div class="more svelte-p79hai"><a> </a> <label class="small svelte-p79hai"><input type="checkbox" class="svelte-p79hai"/> </label></div></div>`),Kn=K(`<section aria-labelledby="tour-title"><div class="progress svelte-p79hai" aria-hidden="true"><span class="svelte-p79hai"></span></div> <div class="words svelte-p79hai"><p class="where svelte-p79hai"> </p> <!> <div id="tour-words"><!> <!> <!> <!></div></div> <!></section>`);function qn(e,t){F(t,!0);let r=f(()=>({...R.trace?.shape})),s=e=>ue(e[H.language],H.language,B(r)),c=f(()=>$.facts(t.step)),u=f(()=>B(c)?(t.step.here??[]).findIndex(e=>ht(e,B(c))):-1),d=f(()=>$.neighbour(1)),p=f(()=>$.neighbour(-1)),m=e=>!R.present||$.beats(t.step)[$.beat]===e,g=f(()=>!t.step.ask||$.guess(t.step)!==null);I(()=>$.saw(t.step)),I(()=>{let e=new AbortController;return R.trace?.model===R.model&&!R.busy&&$.ask(t.step,e.signal).catch(()=>void 0),()=>e.abort()});let _;I(()=>Rn(_,{point:t.step.point,page:t.step.page},()=>!!t.step.here&&!$.facts(t.step)));function v(e){e.key===`Escape`&&(e.preventDefault(),R.present?$.present(!1):$.leave())}function y(e){$.own(e),e&&(Dt.editing=!0)}var b=Kn();let x;var S=l(b),T=l(S);let E;a(S);var D=n(S,2),O=l(D),k=G(O),A=n(O,2);Ie(A,()=>R.present?`h1`:`h2`,!1,(e,n)=>{se(e,()=>({class:`title`,id:`tour-title`,tabindex:`-1`,"aria-describedby":`tour-words`}),void 0,void 0,void 0,`svelte-p79hai`);var r=U();X(e=>J(r,e),[()=>s(t.step.title)]),V(n,r)});var j=n(A,2),M=l(j),N=e=>{var n=zn(),r=G(n,!0);X(e=>J(r,e),[()=>s(t.step.words)]),V(e,n)},ee=f(()=>m(`words`));q(M,e=>{B(ee)&&e(N)});var te=n(M,2),ne=e=>{Fn(e,{get step(){return t.step},get ask(){return t.step.ask},say:s})},re=f(()=>t.step.ask&&(m(`ask`)||m(`here`)&&B(g)));q(te,e=>{B(re)&&e(ne)});var ie=n(te,2),ae=e=>{var n=Bn(),r=l(n),i=e=>{{let n=f(()=>s(t.step.here[B(u)]));Sn(e,{get sentence(){return B(n)},get facts(){return B(c)}})}};q(r,e=>{B(c)&&B(u)>=0&&e(i)}),a(n),X(()=>C(n,`data-claim`,B(u))),V(e,n)},oe=f(()=>t.step.here&&B(g)&&m(`here`));q(ie,e=>{B(oe)&&e(ae)});var ce=n(ie,2),z=e=>{var r=Vn(),i=l(r),o=G(i,!0),c=n(i);a(r),X((e,t)=>{J(o,e),J(c,` ${t??``}`)},[()=>W(`tour.try`),()=>s(t.step.try)]),V(e,r)},de=f(()=>t.step.try&&B(g)&&m(`try`));q(ce,e=>{B(de)&&e(z)}),a(j),a(D);var fe=n(D,2),pe=e=>{var r=Gn(),o=l(r),s=e=>{var t=Hn(),r=l(t);L(r,{get paths(){return i.back},size:14});var o=n(r,1,!0);a(t),X((e,n)=>{C(t,`href`,e),J(o,n)},[()=>$.address(B(p)),()=>W(`tour.back`)]),V(e,t)};q(o,e=>{B(p)&&e(s)});var c=n(o,2),u=e=>{var t=Un(),r=l(t,!0),o=n(r);L(o,{get paths(){return i.on},size:14}),a(t),X((e,n)=>{C(t,`href`,e),J(r,n)},[()=>$.address(B(d)),()=>W(`tour.next`)]),V(e,t)},f=e=>{var t=Wn(),n=G(t,!0);X(e=>J(n,e),[()=>W(`tour.finish`)]),Y(`click`,t,()=>$.leave()),V(e,t)};q(c,e=>{B(d)?e(u):e(f,-1)});var m=n(c,2),g=l(m);L(g,{get paths(){return i.close},size:14});var _=n(g,1,!0);a(m);var v=n(m,2),b=l(v);let x;var S=G(b,!0),w=n(b,2),T=l(w);h(T);var E=n(T,1,!0);a(w),a(v),a(r),X((e,t,n,r)=>{J(_,e),x=P(b,1,`again small svelte-p79hai`,null,x,{strayed:$.strayed}),C(b,`href`,t),J(S,n),Me(T,R.own),J(E,r)},[()=>W(`tour.leave`),()=>$.address(t.step),()=>W(`tour.again`),()=>W(`classroom.own`)]),Y(`click`,m,()=>$.leave()),Y(`change`,T,e=>y(e.currentTarget.checked)),V(e,r)};q(fe,e=>{R.present||e(pe)}),a(b),o(b,e=>_=e,()=>_),X((e,t)=>{x=P(b,1,`card svelte-p79hai`,null,x,{presented:R.present}),E=le(T,``,E,{width:`${100*($.at+1)/$.steps.length}%`}),J(k,`${e??``}${t??``}`)},[()=>$.given&&$.given.steps.some(e=>e.name===t.step.name)?`${s($.given.title)} · `:``,()=>W(`tour.where`,{at:$.at+1,all:$.steps.length})]),Y(`keydown`,b,v),V(e,b),w()}z([`keydown`,`click`,`change`]);var Jn=K(`<div class="failure svelte-1h685s2"><!></div>`),Yn=K(`<section class="offer svelte-1h685s2"><p> </p> <a class="button strong svelte-1h685s2"> </a> <button class="button"><!> </button></section>`),Xn=K(`<div class="guide svelte-1h685s2"><!> <!></div>`);function Zn(e,t){F(t,!1),T();var r=Xn(),o=l(r),s=e=>{var t=Jn(),n=l(t);oe(n,{get failure(){return $.failure},retry:()=>$.open()}),a(t),V(e,t)};q(o,e=>{$.failure&&e(s)});var c=n(o,2),u=e=>{qn(e,{get step(){return $.step}})},d=e=>{var t=Yn(),r=l(t),o=G(r,!0),s=n(r,2),c=G(s,!0),u=n(s,2),d=l(u);L(d,{get paths(){return i.close},size:14});var f=n(d,1,!0);a(u),a(t),X((e,n,r,i)=>{C(t,`aria-label`,e),J(o,n),C(s,`href`,$.entrance),J(c,r),J(f,i)},[()=>W(`tour.name`),()=>W(`tour.offer`,{n:$.steps.length}),()=>W(`tour.start`),()=>W(`tour.decline`)]),Y(`click`,u,()=>$.decline()),V(e,t)};q(c,e=>{$.step?e(u):$.offered&&!Ve&&e(d,1)}),a(r),V(e,r),w()}z([`click`]);var Qn=(e=>(e[e.Border=-1]=`Border`,e[e.Data=0]=`Data`,e[e.Function=1]=`Function`,e[e.Position=2]=`Position`,e[e.Timing=3]=`Timing`,e[e.Alignment=4]=`Alignment`,e))(Qn||{}),$n=[0,1],er=[1,0],tr=[2,3],nr=[3,2],rr={L:$n,M:er,Q:tr,H:nr},ir=/^\d*$/,ar=/^[A-Z0-9 $%*+./:-]*$/,or=`0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ $%*+-./:`,sr=1,cr=40,lr=3,ur=3,dr=40,fr=10,pr=[[-1,7,10,15,20,26,18,20,24,30,18,20,24,26,30,22,24,28,30,28,28,28,28,30,30,26,28,30,30,30,30,30,30,30,30,30,30,30,30,30,30],[-1,10,16,26,18,24,16,18,22,22,26,30,22,22,24,24,28,28,26,26,26,26,28,28,28,28,28,28,28,28,28,28,28,28,28,28,28,28,28,28,28],[-1,13,22,18,26,18,24,18,22,20,24,28,26,24,20,30,24,28,28,26,30,28,30,30,30,30,28,30,30,30,30,30,30,30,30,30,30,30,30,30,30],[-1,17,28,22,16,22,28,26,26,24,28,24,28,22,24,24,30,28,28,26,28,30,24,30,30,30,30,30,30,30,30,30,30,30,30,30,30,30,30,30,30]],mr=[[-1,1,1,1,1,1,2,2,2,2,4,4,4,4,4,6,6,6,6,7,8,8,9,9,10,12,12,12,13,14,15,16,17,18,19,19,20,21,22,24,25],[-1,1,1,1,2,2,4,4,4,5,5,5,8,9,9,10,10,11,13,14,16,17,17,18,20,21,23,25,26,28,29,31,33,35,37,38,40,43,45,47,49],[-1,1,1,2,2,4,4,6,6,8,8,8,10,12,16,12,17,16,18,21,20,23,23,25,27,29,34,34,35,38,40,43,45,48,51,53,56,59,62,65,68],[-1,1,1,2,4,4,4,5,6,8,8,11,11,16,16,18,16,19,21,25,25,25,34,30,32,35,37,40,42,45,48,51,54,57,60,63,66,70,74,77,81]],hr=class{constructor(e,t,n,r){if(this.version=e,this.ecc=t,e<sr||e>cr)throw RangeError(`Version value out of range`);if(r<-1||r>7)throw RangeError(`Mask value out of range`);this.size=e*4+17;let i=Array.from({length:this.size}).fill(!1);for(let e=0;e<this.size;e++)this.modules.push(i.slice()),this.types.push(i.map(()=>0));this.drawFunctionPatterns();let a=this.addEccAndInterleave(n);if(this.drawCodewords(a),r===-1){let e=1e9;for(let t=0;t<8;t++){this.applyMask(t),this.drawFormatBits(t);let n=this.getPenaltyScore();n<e&&(r=t,e=n),this.applyMask(t)}}this.mask=r,this.applyMask(r),this.drawFormatBits(r)}size;mask;modules=[];types=[];getModule(e,t){return e>=0&&e<this.size&&t>=0&&t<this.size&&this.modules[t][e]}drawFunctionPatterns(){for(let e=0;e<this.size;e++)this.setFunctionModule(6,e,e%2==0,Qn.Timing),this.setFunctionModule(e,6,e%2==0,Qn.Timing);this.drawFinderPattern(3,3),this.drawFinderPattern(this.size-4,3),this.drawFinderPattern(3,this.size-4);let e=this.getAlignmentPatternPositions(),t=e.length;for(let n=0;n<t;n++)for(let r=0;r<t;r++)n===0&&r===0||n===0&&r===t-1||n===t-1&&r===0||this.drawAlignmentPattern(e[n],e[r]);this.drawFormatBits(0),this.drawVersion()}drawFormatBits(e){let t=this.ecc[1]<<3|e,n=t;for(let e=0;e<10;e++)n=n<<1^(n>>>9)*1335;let r=(t<<10|n)^21522;for(let e=0;e<=5;e++)this.setFunctionModule(8,e,_r(r,e));this.setFunctionModule(8,7,_r(r,6)),this.setFunctionModule(8,8,_r(r,7)),this.setFunctionModule(7,8,_r(r,8));for(let e=9;e<15;e++)this.setFunctionModule(14-e,8,_r(r,e));for(let e=0;e<8;e++)this.setFunctionModule(this.size-1-e,8,_r(r,e));for(let e=8;e<15;e++)this.setFunctionModule(8,this.size-15+e,_r(r,e));this.setFunctionModule(8,this.size-8,!0)}drawVersion(){if(this.version<7)return;let e=this.version;for(let t=0;t<12;t++)e=e<<1^(e>>>11)*7973;let t=this.version<<12|e;for(let e=0;e<18;e++){let n=_r(t,e),r=this.size-11+e%3,i=Math.floor(e/3);this.setFunctionModule(r,i,n),this.setFunctionModule(i,r,n)}}drawFinderPattern(e,t){for(let n=-4;n<=4;n++)for(let r=-4;r<=4;r++){let i=Math.max(Math.abs(r),Math.abs(n)),a=e+r,o=t+n;a>=0&&a<this.size&&o>=0&&o<this.size&&this.setFunctionModule(a,o,i!==2&&i!==4,Qn.Position)}}drawAlignmentPattern(e,t){for(let n=-2;n<=2;n++)for(let r=-2;r<=2;r++)this.setFunctionModule(e+r,t+n,Math.max(Math.abs(r),Math.abs(n))!==1,Qn.Alignment)}setFunctionModule(e,t,n,r=Qn.Function){this.modules[t][e]=n,this.types[t][e]=r}addEccAndInterleave(e){let t=this.version,n=this.ecc;if(e.length!==Mr(t,n))throw RangeError(`Invalid argument`);let r=mr[n[0]][t],i=pr[n[0]][t],a=Math.floor(jr(t)/8),o=r-a%r,s=Math.floor(a/r),c=[],l=Nr(i);for(let t=0,n=0;t<r;t++){let r=e.slice(n,n+s-i+(t<o?0:1));n+=r.length;let a=Pr(r,l);t<o&&r.push(0),c.push(r.concat(a))}let u=[];for(let e=0;e<c[0].length;e++)c.forEach((t,n)=>{(e!==s-i||n>=o)&&u.push(t[e])});return u}drawCodewords(e){if(e.length!==Math.floor(jr(this.version)/8))throw RangeError(`Invalid argument`);let t=0;for(let n=this.size-1;n>=1;n-=2){n===6&&(n=5);for(let r=0;r<this.size;r++)for(let i=0;i<2;i++){let a=n-i,o=n+1&2?r:this.size-1-r;!this.types[o][a]&&t<e.length*8&&(this.modules[o][a]=_r(e[t>>>3],7-(t&7)),t++)}}}applyMask(e){if(e<0||e>7)throw RangeError(`Mask value out of range`);for(let t=0;t<this.size;t++)for(let n=0;n<this.size;n++){let r;switch(e){case 0:r=(n+t)%2==0;break;case 1:r=t%2==0;break;case 2:r=n%3==0;break;case 3:r=(n+t)%3==0;break;case 4:r=(Math.floor(n/3)+Math.floor(t/2))%2==0;break;case 5:r=n*t%2+n*t%3==0;break;case 6:r=(n*t%2+n*t%3)%2==0;break;case 7:r=((n+t)%2+n*t%3)%2==0;break;default:throw Error(`Unreachable`)}!this.types[t][n]&&r&&(this.modules[t][n]=!this.modules[t][n])}}getPenaltyScore(){let e=0;for(let t=0;t<this.size;t++){let n=!1,r=0,i=[0,0,0,0,0,0,0];for(let a=0;a<this.size;a++)this.modules[t][a]===n?(r++,r===5?e+=lr:r>5&&e++):(this.finderPenaltyAddHistory(r,i),n||(e+=this.finderPenaltyCountPatterns(i)*dr),n=this.modules[t][a],r=1);e+=this.finderPenaltyTerminateAndCount(n,r,i)*dr}for(let t=0;t<this.size;t++){let n=!1,r=0,i=[0,0,0,0,0,0,0];for(let a=0;a<this.size;a++)this.modules[a][t]===n?(r++,r===5?e+=lr:r>5&&e++):(this.finderPenaltyAddHistory(r,i),n||(e+=this.finderPenaltyCountPatterns(i)*dr),n=this.modules[a][t],r=1);e+=this.finderPenaltyTerminateAndCount(n,r,i)*dr}for(let t=0;t<this.size-1;t++)for(let n=0;n<this.size-1;n++){let r=this.modules[t][n];r===this.modules[t][n+1]&&r===this.modules[t+1][n]&&r===this.modules[t+1][n+1]&&(e+=ur)}let t=0;for(let e of this.modules)t=e.reduce((e,t)=>e+ +!!t,t);let n=this.size*this.size,r=Math.ceil(Math.abs(t*20-n*10)/n)-1;return e+=r*fr,e}getAlignmentPatternPositions(){if(this.version===1)return[];{let e=Math.floor(this.version/7)+2,t=this.version===32?26:Math.ceil((this.version*4+4)/(e*2-2))*2,n=[6];for(let r=this.size-7;n.length<e;r-=t)n.splice(1,0,r);return n}}finderPenaltyCountPatterns(e){let t=e[1],n=t>0&&e[2]===t&&e[3]===t*3&&e[4]===t&&e[5]===t;return(n&&e[0]>=t*4&&e[6]>=t?1:0)+(n&&e[6]>=t*4&&e[0]>=t?1:0)}finderPenaltyTerminateAndCount(e,t,n){return e&&(this.finderPenaltyAddHistory(t,n),t=0),t+=this.size,this.finderPenaltyAddHistory(t,n),this.finderPenaltyCountPatterns(n)}finderPenaltyAddHistory(e,t){t[0]===0&&(e+=this.size),t.pop(),t.unshift(e)}};function gr(e,t,n){if(t<0||t>31||e>>>t)throw RangeError(`Value out of range`);for(let r=t-1;r>=0;r--)n.push(e>>>r&1)}function _r(e,t){return!!(e>>>t&1)}var vr=class{constructor(e,t,n){if(this.mode=e,this.numChars=t,this.bitData=n,t<0)throw RangeError(`Invalid argument`);this.bitData=n.slice()}getData(){return this.bitData.slice()}},yr=[1,10,12,14],br=[2,9,11,13],xr=[4,8,16,16];function Sr(e,t){return e[Math.floor((t+7)/17)+1]}function Cr(e){let t=[];for(let n of e)gr(n,8,t);return new vr(xr,e.length,t)}function wr(e){if(!Dr(e))throw RangeError(`String contains non-numeric characters`);let t=[];for(let n=0;n<e.length;){let r=Math.min(e.length-n,3);gr(Number.parseInt(e.substring(n,n+r),10),r*3+1,t),n+=r}return new vr(yr,e.length,t)}function Tr(e){if(!Or(e))throw RangeError(`String contains unencodable characters in alphanumeric mode`);let t=[],n=0;for(;n+2<=e.length;n+=2){let r=or.indexOf(e.charAt(n))*45;r+=or.indexOf(e.charAt(n+1)),gr(r,11,t)}return n<e.length&&gr(or.indexOf(e.charAt(n)),6,t),new vr(br,e.length,t)}function Er(e){return e===``?[]:Dr(e)?[wr(e)]:Or(e)?[Tr(e)]:[Cr(Ar(e))]}function Dr(e){return ir.test(e)}function Or(e){return ar.test(e)}function kr(e,t){let n=0;for(let r of e){let e=Sr(r.mode,t);if(r.numChars>=1<<e)return 1/0;n+=4+e+r.bitData.length}return n}function Ar(e){e=encodeURI(e);let t=[];for(let n=0;n<e.length;n++)e.charAt(n)===`%`?(t.push(Number.parseInt(e.substring(n+1,n+3),16)),n+=2):t.push(e.charCodeAt(n));return t}function jr(e){if(e<sr||e>cr)throw RangeError(`Version number out of range`);let t=(16*e+128)*e+64;if(e>=2){let n=Math.floor(e/7)+2;t-=(25*n-10)*n-55,e>=7&&(t-=36)}return t}function Mr(e,t){return Math.floor(jr(e)/8)-pr[t[0]][e]*mr[t[0]][e]}function Nr(e){if(e<1||e>255)throw RangeError(`Degree out of range`);let t=[];for(let n=0;n<e-1;n++)t.push(0);t.push(1);let n=1;for(let r=0;r<e;r++){for(let e=0;e<t.length;e++)t[e]=Fr(t[e],n),e+1<t.length&&(t[e]^=t[e+1]);n=Fr(n,2)}return t}function Pr(e,t){let n=t.map(e=>0);for(let r of e){let e=r^n.shift();n.push(0),t.forEach((t,r)=>n[r]^=Fr(t,e))}return n}function Fr(e,t){if(e>>>8||t>>>8)throw RangeError(`Byte out of range`);let n=0;for(let r=7;r>=0;r--)n=n<<1^(n>>>7)*285,n^=(t>>>r&1)*e;return n}function Ir(e,t,n=1,r=40,i=-1,a=!0){if(!(sr<=n&&n<=r&&r<=cr)||i<-1||i>7)throw RangeError(`Invalid value`);let o,s;for(o=n;;o++){let n=Mr(o,t)*8,i=kr(e,o);if(i<=n){s=i;break}if(o>=r)throw RangeError(`Data too long`)}for(let e of[er,tr,nr])a&&s<=Mr(o,e)*8&&(t=e);let c=[];for(let t of e){gr(t.mode[0],4,c),gr(t.numChars,Sr(t.mode,o),c);for(let e of t.getData())c.push(e)}let l=Mr(o,t)*8;gr(0,Math.min(4,l-c.length),c),gr(0,(8-c.length%8)%8,c);for(let e=236;c.length<l;e^=253)gr(e,8,c);let u=Array.from({length:Math.ceil(c.length/8)},()=>0);return c.forEach((e,t)=>u[t>>>3]|=e<<7-(t&7)),new hr(o,t,u,i)}function Lr(e,t){let{ecc:n=`L`,boostEcc:r=!1,minVersion:i=1,maxVersion:a=40,maskPattern:o=-1,border:s=1}=t||{},c=typeof e==`string`?Er(e):Array.isArray(e)?[Cr(e)]:void 0;if(!c)throw Error(`uqr only supports encoding string and binary data, but got: ${typeof e}`);let l=Ir(c,rr[n],i,a,o,r),u=Rr({version:l.version,maskPattern:l.mask,size:l.size,data:l.modules,types:l.types},s);return t?.invert&&(u.data=u.data.map(e=>e.map(e=>!e))),t?.onEncoded?.(u),u}function Rr(e,t=1){if(!t)return e;let{size:n}=e,r=n+t*2;e.size=r,e.data.forEach(e=>{for(let n=0;n<t;n++)e.unshift(!1),e.push(!1)});for(let n=0;n<t;n++)e.data.unshift(Array.from({length:r},e=>!1)),e.data.push(Array.from({length:r},e=>!1));let i=Qn.Border;e.types.forEach(e=>{for(let n=0;n<t;n++)e.unshift(i),e.push(i)});for(let n=0;n<t;n++)e.types.unshift(Array.from({length:r},e=>i)),e.types.push(Array.from({length:r},e=>i));return e}var zr=K(`<p class="failed svelte-12s4l6k" role="alert"> </p>`),Br=K(`<p class="command"><code class="svelte-12s4l6k">cutaway explore --remote</code></p>`),Vr=K(`<svg role="img" class="svelte-12s4l6k"><path></path></svg> <p class="link svelte-12s4l6k"><a target="_blank" rel="noopener" class="svelte-12s4l6k"> </a></p> <button class="button"> </button> <p class="quiet"> </p> <!>`,1),Hr=K(`<div class="waiting svelte-12s4l6k" aria-hidden="true"></div>`),Ur=K(`<dialog aria-labelledby="remote-title" class="svelte-12s4l6k"><header class="svelte-12s4l6k"><h2 id="remote-title"> </h2> <button class="close svelte-12s4l6k"><!></button></header> <!> <!></dialog>`);function Wr(e,r){F(r,!0);let s,c=A(``),u=f(()=>t.link?Lr(t.link,{border:2}):null),d=f(()=>B(u)?B(u).data.flatMap((e,t)=>e.map((e,n)=>e?`M${n} ${t}h1v1h-1z`:``)).join(``):``);I(()=>{s.showModal(),t.begin().catch(e=>D(c,String(e),!0))});let p=A(!1),m=()=>void navigator.clipboard?.writeText(t.link).then(()=>D(p,!0),()=>void 0);var h=Ur(),g=l(h),_=l(g),v=G(_,!0),y=n(_,2),b=l(y);L(b,{get paths(){return i.close}}),a(y),a(g);var x=n(g,2),S=e=>{var t=zr(),n=G(t,!0);X(()=>J(n,B(c))),V(e,t)};q(x,e=>{B(c)&&e(S)});var T=n(x,2),E=e=>{var r=Vr(),i=M(r),o=G(i),s=n(i,2),c=l(s),f=G(c,!0);a(s);var h=n(s,2),g=G(h,!0),_=n(h,2),v=G(_,!0),y=n(_,2),b=e=>{var t=Br();V(e,t)};q(y,e=>{t.begun?.address||e(b)}),X((e,n,r)=>{C(i,`viewBox`,`0 0 ${B(u).size??``} ${B(u).size??``}`),C(i,`aria-label`,e),C(o,`d`,B(d)),C(c,`href`,t.link),J(f,t.link),J(g,n),J(v,r)},[()=>W(`classroom.code`),()=>B(p)?W(`classroom.copied`):W(`classroom.copy`),()=>t.begun?.address?W(`classroom.remote_network`):W(`classroom.remote_here`)]),Y(`click`,h,m),V(e,r)},O=e=>{var t=Hr();V(e,t)};q(T,e=>{B(u)?e(E):B(c)||e(O,1)}),a(h),o(h,e=>s=e,()=>s),X((e,t)=>{J(v,e),C(y,`aria-label`,t)},[()=>W(`classroom.remote`),()=>W(`shell.close`)]),Be(`close`,h,function(...e){r.onclose?.apply(this,e)}),Y(`click`,y,()=>s.close()),V(e,h),w()}z([`click`]);var Gr=K(`<span class="dot svelte-vhtzdq" aria-hidden="true"></span>`),Kr=K(`<button class="button"> <!></button>`),qr=K(`<section class="bar svelte-vhtzdq"><button class="button"><!></button> <button class="button strong"><!></button> <!> <button class="button"> </button> <button class="button"><!> </button></section> <!>`,1);function Jr(e,r){F(r,!0);let o=A(!1),s=e=>ue(e?.[H.language]??``,H.language,{...R.trace?.shape}),c=f(()=>!$.step||!$.neighbour(1)&&$.beat===$.beats($.step).length-1),u=f(()=>!$.step||!$.neighbour(-1)&&$.beat===0);function d(e){e===`play`?document.querySelector(`[data-play]`)?.click():$.step?$.turn(e===`next`?1:-1):document.body.dispatchEvent(new KeyboardEvent(`keydown`,{key:e===`next`?`ArrowRight`:`ArrowLeft`,bubbles:!0}))}I(()=>t.begun?t.listen(d):void 0),I(()=>{if(!t.listening)return;let{step:e}=$;t.tell({title:e?s(e.title):W(`${R.page}.title`),at:$.at+1,all:e?$.steps.length:0,part:e?$.beats(e)[$.beat]:``,notes:s(e?.notes),next:s($.neighbour(1)?.title),language:H.language})});function p(){document.fullscreenElement?document.exitFullscreen():document.documentElement.requestFullscreen?.().catch(()=>void 0)}var m=qr(),h=M(m),g=l(h),_=l(g);L(_,{get paths(){return i.back},size:18}),a(g);var v=n(g,2),y=l(v);L(y,{get paths(){return i.on},size:18}),a(v);var b=n(v,2),x=e=>{var r=Kr(),i=l(r,!0),s=n(i),c=e=>{var t=Gr();V(e,t)};q(s,e=>{t.listening&&e(c)}),a(r),X(e=>{C(r,`aria-pressed`,B(o)),J(i,e)},[()=>W(`classroom.remote`)]),Y(`click`,r,()=>D(o,!B(o))),V(e,r)};q(b,e=>{$.remote&&e(x)});var S=n(b,2),T=G(S,!0),E=n(S,2),O=l(E);L(O,{get paths(){return i.close},size:16});var k=n(O,1,!0);a(E),a(h);var j=n(h,2),N=e=>{Wr(e,{onclose:()=>D(o,!1)})};q(j,e=>{B(o)&&e(N)}),X((e,t,n,r,i)=>{C(h,`aria-label`,e),g.disabled=B(u),C(g,`aria-label`,t),v.disabled=B(c)&&!!$.step,C(v,`aria-label`,n),J(T,r),J(k,i)},[()=>W(`classroom.presenting`),()=>W(`tour.back`),()=>W(`tour.next`),()=>W(`classroom.whole`),()=>W(`classroom.end`)]),Y(`click`,g,()=>d(`back`)),Y(`click`,v,()=>d(`next`)),Y(`click`,S,p),Y(`click`,E,()=>$.present(!1)),V(e,m),w()}z([`click`]);var Yr=K(`<p class="veil svelte-1n46o8q"> </p>`),Xr=K(`<div class="failure svelte-1n46o8q"><!></div>`),Zr=K(`<a class="skip svelte-1n46o8q" href="#page-title"> </a> <div><!> <!> <!> <main id="page"><!> <!> <!> <!> <!> <!></main></div> <!> <!> <!>`,1);function Qr(e,t){F(t,!0);let i=f(()=>ft.find(e=>e.name===R.page)??ft[0]),o=f(()=>!R.trace||k(R.trace.map,B(i).views)),s=f(()=>B(i).load().catch(async e=>{throw await r()||Re.back().then(()=>location.reload()),e}));I(()=>{document.title=`${W(`${B(i).name}.title`)} · Cutaway`});let c=null;I(()=>{let e={page:B(i).name,step:$.step?.name??``},t=c&&(e.step===c.step?e.page===c.page?``:`page-title`:e.step?`tour-title`:`page-title`);c=e,t&&B(s).then(ze).then(()=>document.getElementById(t)?.focus({preventScroll:!0}))});let u=A(Se(Ve?.bare??!1));I(()=>{document.documentElement.toggleAttribute(`data-presenting`,R.present),document.documentElement.toggleAttribute(`data-pointing`,R.present&&!!$.step)}),ee(()=>{fe.refresh().catch(()=>void 0),We||$.open()});var p=Zr();Be(`keydown`,d,e=>Dt.press(e));var m=M(p),h=G(m,!0),_=n(m,2);let v;var y=l(_);Kt(y,{});var b=n(y,2);Qt(b,{});var x=n(b,2);Zn(x,{});var S=n(x,2);let C;var T=l(S),E=e=>{var t=Yr(),n=G(t,!0);X(e=>J(n,e),[()=>W(`classroom.veil`)]),V(e,t)};q(T,e=>{$.veiled&&e(E)});var O=n(T,2);Jt(O,{});var j=n(O,2),N=e=>{yn(e,{onclose:()=>D(u,!1)})};q(j,e=>{B(u)&&B(i).name===`predict`&&!$.step&&e(N)});var te=n(j,2),ne=e=>{let t=f(()=>R.notOpened);var n=Xr(),r=l(n);oe(r,{get failure(){return B(t).failure},get model(){return B(t).model},retry:()=>R.use(B(t).model)}),a(n),V(e,n)};q(te,e=>{R.notOpened&&e(ne)});var re=n(te,2),ie=e=>{var t=Xr(),n=l(t);oe(n,{get failure(){return R.failure},retry:()=>R.again()}),a(t),V(e,t)};q(re,e=>{R.failure&&e(ie)});var L=n(re,2),ae=e=>{ot(e,{})},se=e=>{var t=ge(),n=M(t);pe(n,()=>B(s),null,(e,t)=>{var n=ge(),r=M(n);Oe(r,()=>B(i).name,e=>{var n=ge(),r=M(n),a=e=>{var n=ge(),r=M(n);Ee(r,()=>B(t).default,(e,t)=>{t(e,{})}),V(e,n)},s=e=>{fn(e,{get page(){return B(i)}})};q(r,e=>{B(o)?e(a):e(s,-1)}),V(e,n)}),V(e,n)},(e,t)=>{var n=Xr(),r=l(n);{let e=f(()=>({code:`page`,what:String(B(t)),remedy:``,values:{}}));oe(r,{get failure(){return B(e)},retry:()=>location.reload()})}a(n),V(e,n)}),V(e,t)};q(L,e=>{R.beside?e(ae):e(se,-1)}),a(S),a(_);var ce=n(_,2),le=e=>{Jr(e,{})};q(ce,e=>{R.present&&e(le)});var z=n(ce,2);tn(z,{});var ue=n(z,2);g(ue,{}),X(e=>{J(h,e),v=P(_,1,`app svelte-1n46o8q`,null,v,{two:R.beside}),C=P(S,1,`svelte-1n46o8q`,null,C,{veiled:$.veiled})},[()=>W(`shell.skip`)]),Y(`click`,m,e=>{e.preventDefault(),document.getElementById(`page-title`)?.focus()}),V(e,p),w()}z([`click`]);var $r=document.getElementById(`app`);function ei(){H.start(R.start()),qe(),ti(Qr)}function ti(e){$r.replaceChildren(),we(e,{target:$r})}if(Ve){let e=Ve;Q(async()=>{let{openSite:e}=await import(`./site.js`);return{openSite:e}},[],import.meta.url).then(({openSite:t})=>{re(t(e)),ei()})}else/^#\/remote\?/.test(location.hash)?(H.start({}),Q(async()=>{let{default:e}=await import(`./Remote.js`);return{default:e}},__vite__mapDeps([44,1,2,45]),import.meta.url).then(({default:e})=>ti(e))):ei();export{Dt as n,Q as r,ln as t};