--
-- PostgreSQL database dump
--

-- Dumped from database version 11.22 (Debian 11.22-1.pgdg120+1)
-- Dumped by pg_dump version 11.22 (Debian 11.22-1.pgdg120+1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: plpgsql; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;


--
-- Name: EXTENSION plpgsql; Type: COMMENT; Schema: -; Owner: -
--

COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL procedural language';


SET default_tablespace = '';

SET default_with_oids = false;

--
-- Name: hoge; Type: TABLE; Schema: public; Owner: foo
--

CREATE TABLE public.hoge (
    id integer NOT NULL,
    name text
);


ALTER TABLE public.hoge OWNER TO foo;

--
-- Name: hoge_id_seq; Type: SEQUENCE; Schema: public; Owner: foo
--

CREATE SEQUENCE public.hoge_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.hoge_id_seq OWNER TO foo;

--
-- Name: hoge_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: foo
--

ALTER SEQUENCE public.hoge_id_seq OWNED BY public.hoge.id;


--
-- Name: settings; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.settings (
    name text
);


ALTER TABLE public.settings OWNER TO postgres;

--
-- Name: hoge id; Type: DEFAULT; Schema: public; Owner: foo
--

ALTER TABLE ONLY public.hoge ALTER COLUMN id SET DEFAULT nextval('public.hoge_id_seq'::regclass);


--
-- Data for Name: hoge; Type: TABLE DATA; Schema: public; Owner: foo
--

COPY public.hoge (id, name) FROM stdin;
1	foo
2	bar
\.


--
-- Data for Name: settings; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.settings (name) FROM stdin;
\.


--
-- Name: hoge_id_seq; Type: SEQUENCE SET; Schema: public; Owner: foo
--

SELECT pg_catalog.setval('public.hoge_id_seq', 2, true);


--
-- PostgreSQL database dump complete
--

